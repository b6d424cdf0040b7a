// Random numbers of a simulation: the same on every machine and with every library. Plain values; no threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::simulation {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) { next(); }

  uint64_t next() {
    state_ += 0x9E3779B97F4A7C15U;
    uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
    return mixed ^ (mixed >> 31U);
  }
  /// Returns a number from 0 to `count` - 1.
  size_t below(size_t count) { return static_cast<size_t>(next() % count); }
  double between(double low, double high) {
    constexpr double kSteps = 1U << 24U;
    return low + (high - low) * static_cast<double>(next() >> 40U) / kSteps;
  }
  bool chance(double probability) { return between(0, 1) < probability; }
  template <class T>
  const T& one_of(std::span<const T> values) {
    return values[below(values.size())];
  }
  /// Returns an independent sequence of numbers.
  Random fork() { return Random(next()); }

 private:
  uint64_t state_;
};

}  // namespace lockstep::simulation
