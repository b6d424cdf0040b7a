// The run's own steps.csv and evals.csv when leadership may move: open only while this process leads. Borrows the
// directory. A hook, for the training thread.
#pragma once

#include <functional>
#include <optional>

#include "run/run_log.h"

namespace lockstep::run {

class LeadersLog final : public train::Hooks {
 public:
  LeadersLog(const RunDirectory& run, uint64_t log_every, std::function<bool()> leads);

  /// As RunLog::go_back, if this process leads.
  void go_back(uint64_t step, uint64_t examples);
  /// Closes the log: another process may write from here on.
  void close();

  void on_start(const train::StartEvent& event) override;
  void on_step(const train::StepEvent& event) override;
  void on_eval(const train::EvalEvent& event) override;
  void before_checkpoint() override;
  void on_end(const train::Outcome& outcome) override;

 private:
  /// Returns the log if this process leads, otherwise null. Drops later steps and evaluations, left by a leader that
  /// died.
  RunLog* log(uint64_t step, uint64_t evaluated);

  const RunDirectory& run_;
  uint64_t log_every_;
  std::function<bool()> leads_;
  train::StartEvent start_;
  RunLog::Mark mark_;  ///< latest step that this process knows of
  std::optional<RunLog> log_;
};

}  // namespace lockstep::run
