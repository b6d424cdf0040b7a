// When things are done that are not done at every step. A Pace is for what is worth doing at evaluations, though not
// where they follow each other closely: a small model's epoch takes a few milliseconds. The first is done, then one
// every few seconds, and the last.
#pragma once

#include <cstdint>
#include <optional>

namespace lockstep::train {

/// Of what is done every so many steps: whether it is due now; never where `every` is 0.
inline bool due(uint64_t every, uint64_t before, uint64_t step) { return every > 0 && step / every != before / every; }

class Pace {
 public:
  /// At an evaluation: whether it is time again.
  bool due(uint64_t step, double seconds) {
    const bool now = !last_ || seconds - *last_ >= kSeconds;
    left_out_.reset();
    if (now) last_ = seconds;
    if (!now) left_out_ = step;
    return now;
  }
  /// At the end: whether the evaluation of that step was left out.
  [[nodiscard]] bool left_out(uint64_t step) const { return left_out_ == step; }

 private:
  static constexpr double kSeconds = 3;

  std::optional<double> last_;
  std::optional<uint64_t> left_out_;
};

}  // namespace lockstep::train
