// Statistics of many durations. Each one costs a few additions and a place in a histogram, without allocation.
// Quantiles are exact to within 1 %. Not synchronised: one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

namespace lockstep::base {

class Durations {
 public:
  void add(double seconds);
  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] double seconds() const { return seconds_; }
  [[nodiscard]] double mean() const { return count_ == 0 ? 0 : seconds_ / static_cast<double>(count_); }
  /// Returns the quantile q, 0 to 1; 0 if there are no durations.
  [[nodiscard]] double quantile(double q) const;

 private:
  static constexpr int kPerOctave = 64;
  static constexpr int kOctaves = 44;  ///< from a nanosecond on

  uint64_t count_ = 0;
  uint64_t zeros_ = 0;
  double seconds_ = 0;
  double least_ = std::numeric_limits<double>::infinity();
  double most_ = 0;
  std::array<uint32_t, kPerOctave* kOctaves> places_ = {};
};

/// Statistics of the durations, in seconds.
struct DurationRecord {
  std::string_view name;  ///< must be a string literal
  uint64_t count = 0;
  double seconds = 0;
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
};
DurationRecord record_of(std::string_view name, const Durations& durations);

}  // namespace lockstep::base
