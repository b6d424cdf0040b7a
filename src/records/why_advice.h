// What to change in a run, each with what the model says it would gain. Internal to this room.
#pragma once

#include <string>
#include <vector>

#include "records/fit.h"

namespace lockstep::records {

class Advice {
 public:
  Advice(const RunRecord& run, const Fit& fit) : run_(run), fit_(fit), options_(few_steps(fit.training)) {}

  /// Returns the simulated seconds of a step.
  [[nodiscard]] double step_of(const predict::Training& training) const;
  /// Returns the training with twice the batch.
  [[nodiscard]] predict::Training doubled(predict::Training training) const;

  [[nodiscard]] std::vector<std::string> fewer_bytes() const;
  [[nodiscard]] std::vector<std::string> stronger_servers(size_t slowest) const;
  /// `even`: the step if the role were like the others, over the step as it is
  [[nodiscard]] std::vector<std::string> without_straggler(const std::string& role, double even) const;
  [[nodiscard]] std::vector<std::string> rarer(double cost, const std::string& what) const;
  [[nodiscard]] std::vector<std::string> more_compute() const;

 private:
  /// Returns ": 1.4 times as fast." for a changed training, or "." if that is not worth a word.
  [[nodiscard]] std::string gain(const predict::Training& changed, double examples = 1) const;

  const RunRecord& run_;
  const Fit& fit_;
  predict::SimulationOptions options_;
};

}  // namespace lockstep::records
