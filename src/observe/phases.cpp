#include "observe/phases.h"

namespace lockstep::observe {
namespace {

/// Returns true for phases that do not occur in every step.
bool now_and_then(train::Phase phase) { return phase == train::Phase::evaluation || phase == train::Phase::checkpoint; }

}  // namespace

void PhaseTimes::add(const train::PhaseSeconds& seconds) {
  for (size_t i = 0; i < seconds.size(); ++i) {
    if (seconds[i] > 0 || !now_and_then(static_cast<train::Phase>(i))) durations_[i].add(seconds[i]);
  }
}

void PhaseTimes::add_aside(const train::PhaseSeconds& seconds) {
  for (size_t i = 0; i < seconds.size(); ++i) {
    if (seconds[i] > 0) durations_[i].add(seconds[i]);
  }
}

std::vector<train::PhaseRecord> PhaseTimes::records() const {
  double all = 0;
  for (const Durations& durations : durations_) all += durations.seconds();
  std::vector<train::PhaseRecord> records;
  for (size_t i = 0; i < durations_.size(); ++i) {
    const Durations& d = durations_[i];
    if (d.seconds() <= 0) continue;
    records.push_back({static_cast<train::Phase>(i), d.count(), d.seconds(), d.seconds() / all, d.mean(),
                       d.quantile(0.5), d.quantile(0.95), d.quantile(0.99)});
  }
  return records;
}

}  // namespace lockstep::observe
