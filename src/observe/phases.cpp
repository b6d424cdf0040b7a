#include "observe/phases.h"

#include <algorithm>
#include <cmath>

namespace lockstep::train {

std::string_view text(Phase phase) {
  constexpr std::array<std::string_view, kPhases> kTexts = {"data wait",  "forward",    "backward", "optimizer",
                                                            "push",       "pull",       "transfer", "wait for others",
                                                            "evaluation", "checkpoint", "rest"};
  return kTexts[static_cast<size_t>(phase)];
}

}  // namespace lockstep::train

namespace lockstep::observe {
namespace {

constexpr double kSmallest = 1e-9;

}  // namespace

void Durations::add(double seconds) {
  ++count_;
  seconds_ += seconds;
  const double octaves = std::log2(std::max(seconds, kSmallest) / kSmallest);
  const auto place = static_cast<size_t>(octaves * kPerOctave);
  ++places_[std::min(place, places_.size() - 1)];
}

double Durations::quantile(double q) const {
  if (count_ == 0) return 0;
  const auto rank = static_cast<uint64_t>(std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(count_)));
  uint64_t seen = 0;
  for (size_t i = 0; i < places_.size(); ++i) {
    seen += places_[i];
    if (seen >= std::max<uint64_t>(rank, 1)) {
      return kSmallest * std::exp2((static_cast<double>(i) + 0.5) / kPerOctave);
    }
  }
  return 0;
}

void PhaseTimes::add(const train::PhaseSeconds& seconds) {
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
    if (d.count() == 0) continue;
    records.push_back({static_cast<train::Phase>(i), d.count(), d.seconds(), d.seconds() / all,
                       d.seconds() / static_cast<double>(d.count()), d.quantile(0.5), d.quantile(0.95),
                       d.quantile(0.99)});
  }
  return records;
}

}  // namespace lockstep::observe
