// Figures of a role for its status lines, each over the steps since the line before. Rates count the role's own
// examples, so that the rates of all workers add up to the cluster's; losses are those of whole updates. For one
// thread.
#pragma once

#include "display/phase_shares.h"
#include "display/step_means.h"
#include "lockstep/train_events.h"

namespace lockstep::display {

struct StatusFigures {
  double examples_per_s = 0;        ///< own examples only
  double wait_share = 0;            ///< share of the time spent exchanging gradients for parameters
  double staleness = 0;             ///< mean
  StepMeans means;                  ///< over all examples of the updates
  train::PhaseSeconds phases = {};  ///< shares of the time
};

class StatusSteps {
 public:
  /// Starts at `seconds` of the process's clock.
  void start(double seconds);
  void add(const train::StepEvent& event) {
    own_examples_ += static_cast<uint64_t>(event.own_examples);
    waited_ += event.wait_seconds;
    staleness_ += static_cast<double>(event.staleness);
    means_.add(event);
    phases_.add(event.phases);
    ++steps_;
  }
  /// Returns the figures from the last call, or the start, to `seconds`.
  StatusFigures take(double seconds);

 private:
  double since_ = 0;
  uint64_t steps_ = 0;
  uint64_t own_examples_ = 0;
  double waited_ = 0;
  double staleness_ = 0;
  StepMeans means_;
  PhaseShares phases_;
};

}  // namespace lockstep::display
