// Estimates how long runs take.
#include "lab/estimate.h"
#include "lab/runner.h"

namespace lockstep::lab {

Clock::Clock(std::span<const nn::ModelDef> models, const Experiment& experiment,
             const std::vector<RunResult>& results) {
  Estimator estimator(models);
  for (const Group& group : experiment.groups) {
    for (const RunPlan& plan : group.runs) guesses_[plan.key] = estimator.seconds(plan);
  }
  for (const RunResult& run : results) {
    if (run.state == RunState::done && run.ended > run.started) took(run.plan.key, run.ended - run.started);
  }
}

double Clock::seconds(const std::string& key) const {
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  // A repeat takes as long as the first.
  const auto place = known_.lower_bound(key.substr(0, key.rfind("-r")) + "-r");
  if (place != known_.end() && place->first.substr(0, place->first.rfind("-r")) == key.substr(0, key.rfind("-r"))) {
    return place->second;
  }
  const auto guess = guesses_.find(key);
  return guess == guesses_.end() ? 0 : guess->second * (guessed_ > 0 ? taken_ / guessed_ : 1);
}

void Clock::took(const std::string& key, double seconds) {
  known_[key] = seconds;
  guessed_ += guesses_[key];
  taken_ += seconds;
}

}  // namespace lockstep::lab
