#include "base/durations.h"

#include <algorithm>
#include <cmath>

namespace lockstep::base {
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
