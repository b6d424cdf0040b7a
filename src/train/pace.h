// Timing of work that is not done at every step. A Pace limits work at evaluations that follow each other closely: a
// small model's epoch takes a few milliseconds. The first evaluation is due, then one every few seconds, and the last.
#pragma once

#include <cstdint>
#include <optional>

namespace lockstep::train {

/// Returns true if a multiple of `every` lies in (before, step]; never if `every` is 0.
inline bool due(uint64_t every, uint64_t before, uint64_t step) { return every > 0 && step / every != before / every; }

class Pace {
 public:
  /// Called at an evaluation: returns true if the work is due again.
  bool due(uint64_t step, double seconds) {
    const bool now = !last_ || seconds - *last_ >= kSeconds;
    skipped_.reset();
    if (now) last_ = seconds;
    if (!now) skipped_ = step;
    return now;
  }
  /// Called at the end: returns true if the work of that step's evaluation was skipped.
  [[nodiscard]] bool skipped(uint64_t step) const { return skipped_ == step; }

 private:
  static constexpr double kSeconds = 3;

  std::optional<double> last_;
  std::optional<uint64_t> skipped_;
};

}  // namespace lockstep::train
