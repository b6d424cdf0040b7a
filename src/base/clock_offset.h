// How far another clock is ahead of this one's, from messages between the two. Nothing arrives before it was sent: a
// message there says at most how far, one from there at least; the quicker they were, the closer. What both see at
// about the same moment narrows it down where messages are slow in one direction. Plain values of nanoseconds; for one
// thread at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace lockstep::base {

class ClockOffset {
 public:
  /// A message from here: when it was sent by this clock, and came by the other.
  void sent(int64_t here, int64_t there);
  /// A message from there: when it was sent by the other clock, and came by this one.
  void came(int64_t there, int64_t here);
  /// The same moment by both, more or less.
  void saw(int64_t here, int64_t there);

  /// What to add to this clock to have the other's; nothing where too little is known. None at all where that
  /// contradicts no message, and messages are all there is or both clocks are of one machine, where that is exact.
  [[nodiscard]] std::optional<int64_t> nanoseconds(bool one_machine = false) const;

 private:
  static constexpr size_t kMoments = 255;
  static constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

  int64_t most_ = kUnknown;
  int64_t least_ = -kUnknown;
  std::vector<int64_t> moments_;
};

}  // namespace lockstep::base
