#include "base/durations.h"

#include <algorithm>
#include <cmath>

namespace lockstep::base {
namespace {

constexpr double kSmallest = 1e-9;

}  // namespace

void Durations::add(double seconds) {
  ++count_;
  if (seconds <= 0) {
    ++zeros_;
    return;
  }
  seconds_ += seconds;
  least_ = std::min(least_, seconds);
  most_ = std::max(most_, seconds);
  const double octaves = std::log2(std::max(seconds, kSmallest) / kSmallest);
  const auto place = static_cast<size_t>(octaves * kPerOctave);
  ++places_[std::min(place, places_.size() - 1)];
}

double Durations::quantile(double q) const {
  const auto rank = static_cast<uint64_t>(std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(count_)));
  uint64_t seen = zeros_;
  if (std::max<uint64_t>(rank, 1) <= seen) return 0;
  for (size_t i = 0; i < places_.size(); ++i) {
    seen += places_[i];
    if (seen < std::max<uint64_t>(rank, 1)) continue;
    return std::clamp(kSmallest * std::exp2((static_cast<double>(i) + 0.5) / kPerOctave), least_, most_);
  }
  return 0;
}

DurationRecord record_of(std::string_view name, const Durations& durations) {
  return {name,
          durations.count(),
          durations.seconds(),
          durations.mean(),
          durations.quantile(0.5),
          durations.quantile(0.95),
          durations.quantile(0.99)};
}

}  // namespace lockstep::base
