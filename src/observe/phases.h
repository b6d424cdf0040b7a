// Adds up where the time of steps goes. Cheap enough for every step: a few additions and a place in a histogram for
// each phase that took time; nothing is allocated after construction. One thread adds; the same thread, or another when
// it has ended, asks.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lockstep/train.h"

namespace lockstep::observe {

/// How long something took, many times over: quantiles to within 1 %.
class Durations {
 public:
  void add(double seconds);
  [[nodiscard]] uint64_t count() const { return count_; }
  [[nodiscard]] double seconds() const { return seconds_; }
  /// q from 0 to 1; 0 where there is none.
  [[nodiscard]] double quantile(double q) const;

 private:
  static constexpr int kPerOctave = 64;
  static constexpr int kOctaves = 44;  ///< from a nanosecond on

  uint64_t count_ = 0;
  double seconds_ = 0;
  std::array<uint32_t, kPerOctave* kOctaves> places_ = {};
};

class PhaseTimes {
 public:
  void add(const train::PhaseSeconds& seconds);
  /// Those that took time, in the order of the phases.
  [[nodiscard]] std::vector<train::PhaseRecord> records() const;
  [[nodiscard]] double seconds(train::Phase phase) const { return durations_[static_cast<size_t>(phase)].seconds(); }

 private:
  std::array<Durations, train::kPhases> durations_;
};

}  // namespace lockstep::observe
