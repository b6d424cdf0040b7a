#include "observe/monitor/column_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lockstep::observe {
namespace {

constexpr double kPerOctave = 64;
constexpr int16_t kZeroExponent = std::numeric_limits<int16_t>::min();
constexpr double kMostOctaves = 100;

int16_t place_of(double value) {
  if (value <= 0) return kZeroExponent;
  const double octaves = std::clamp(std::log2(value), -kMostOctaves, kMostOctaves);
  return static_cast<int16_t>(std::floor(octaves * kPerOctave));
}

double middle_of(int16_t place) {
  constexpr double kHalf = 0.5;
  return place == kZeroExponent ? 0 : std::exp2((place + kHalf) / kPerOctave);
}

}  // namespace

void ColumnStatistics::add(double value, double seconds, bool brief) {
  if (!std::isfinite(value) || !(seconds > 0)) return;
  const bool first = seconds_ == 0;
  least_ = first ? value : std::min(least_, value);
  largest_ = first ? value : std::max(largest_, value);
  if (!brief) {
    peak_ = has_peak_ ? std::max(peak_, value) : value;
    has_peak_ = true;
  }
  seconds_ += seconds;
  sum_ += value * seconds;
  places_[place_of(value)] += seconds;
}

double ColumnStatistics::mean() const {
  return seconds_ > 0 ? sum_ / seconds_ : std::numeric_limits<double>::quiet_NaN();
}

double ColumnStatistics::quantile(double q) const {
  if (seconds_ == 0) return std::numeric_limits<double>::quiet_NaN();
  double left = q * seconds_;
  for (const auto& [place, seconds] : places_) {
    left -= seconds;
    constexpr double kRounding = 1e-9;
    if (left <= kRounding * seconds_) return std::clamp(middle_of(place), least_, max());
  }
  return max();
}

double ColumnStatistics::max() const {
  if (seconds_ == 0) return std::numeric_limits<double>::quiet_NaN();
  return has_peak_ ? peak_ : largest_;
}

}  // namespace lockstep::observe
