// When training ends: rules that combine, the first met wins. They look at the state alone, so a run that is resumed
// after its end finds the same rule met again. Free of side effects; any thread.
#pragma once

#include <optional>

#include "checkpoint/training_state.h"
#include "settings/settings.h"

namespace lockstep::train {

struct StopRules {
  int64_t epochs = 0;  ///< 0: no such rule, as for the next two
  uint64_t steps = 0;
  double seconds = 0;
  std::optional<double> loss;      ///< evaluated loss at most
  std::optional<double> accuracy;  ///< evaluated accuracy at least

  static StopRules from(const settings::Settings& settings);

  /// Which rule the state meets; `none` to go on. A goal that is reached comes before a limit.
  [[nodiscard]] StopReason check(const checkpoint::TrainingState& state, const RunClock& clock) const;
  /// The limits alone (epochs, steps, seconds): cheap, for every step.
  [[nodiscard]] StopReason check_step(const checkpoint::TrainingState& state, const RunClock& clock) const;
  /// What is counted alone (epochs, steps): whether there is anything to begin.
  [[nodiscard]] StopReason check_counts(const checkpoint::TrainingState& state) const;
  /// The goals alone (loss, accuracy), by the last evaluation.
  [[nodiscard]] StopReason check_goals(const checkpoint::TrainingState& state) const;
};

}  // namespace lockstep::train
