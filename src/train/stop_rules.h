// Stop rules of training: they combine, and the first one met ends it. They depend on the state alone, so a run resumed
// after its end meets the same rule again. No side effects; any thread.
#pragma once

#include <optional>

#include "checkpoint/training_state.h"
#include "settings/settings.h"

namespace lockstep::train {

struct StopRules {
  int64_t epochs = 0;  ///< 0: no such rule; the same for the next two
  uint64_t steps = 0;
  double seconds = 0;
  std::optional<double> loss;      ///< stop if the evaluated loss is at most this
  std::optional<double> accuracy;  ///< stop if the evaluated accuracy is at least this

  static StopRules from(const settings::Settings& settings);

  /// Returns the rule that the state meets; `none` to continue. A goal comes before a limit.
  [[nodiscard]] StopReason check(const checkpoint::TrainingState& state, const RunClock& clock) const;
  /// Checks the limits alone (epochs, steps, seconds): cheap, for every step.
  [[nodiscard]] StopReason check_step(const checkpoint::TrainingState& state, const RunClock& clock) const;
  /// Checks the counts alone (epochs, steps), to see whether there is anything left to train.
  [[nodiscard]] StopReason check_counts(const checkpoint::TrainingState& state) const;
  /// Checks the goals alone (loss, accuracy), by the last evaluation.
  [[nodiscard]] StopReason check_goals(const checkpoint::TrainingState& state) const;
};

}  // namespace lockstep::train
