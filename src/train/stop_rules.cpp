#include "train/stop_rules.h"

namespace lockstep::train {

StopRules StopRules::from(const settings::Settings& settings) {
  return {settings.epochs, static_cast<uint64_t>(settings.steps), settings.seconds, settings.stop_loss,
          settings.stop_accuracy};
}

StopReason StopRules::check_counts(const checkpoint::TrainingState& state) const {
  if (steps > 0 && state.step >= steps) return StopReason::steps;
  if (epochs > 0 && state.epochs >= epochs) return StopReason::epochs;
  return StopReason::none;
}

StopReason StopRules::check_step(const checkpoint::TrainingState& state, const RunClock& clock) const {
  const StopReason counted = check_counts(state);
  if (counted != StopReason::none) return counted;
  if (seconds > 0 && clock.seconds() >= seconds) return StopReason::seconds;
  return StopReason::none;
}

StopReason StopRules::check_goals(const checkpoint::TrainingState& state) const {
  if (!state.last_eval) return StopReason::none;
  if (accuracy && state.last_eval->accuracy >= *accuracy) return StopReason::accuracy;
  if (loss && state.last_eval->loss <= *loss) return StopReason::loss;
  return StopReason::none;
}

StopReason StopRules::check(const checkpoint::TrainingState& state, const RunClock& clock) const {
  const StopReason goal = check_goals(state);
  return goal != StopReason::none ? goal : check_step(state, clock);
}

}  // namespace lockstep::train
