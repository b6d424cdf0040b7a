// Estimates how far another clock is ahead of this one, from messages between the two. No message arrives before it was
// sent: a message to the other side gives an upper bound of the difference, a message from there a lower bound. Faster
// messages give tighter bounds. Events that both sides see at about the same moment narrow the range if messages are
// slow in one direction. Plain values in nanoseconds; for one thread at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace lockstep::base {

class ClockOffset {
 public:
  /// Adds a message from here: its send time by this clock, its arrival by the other.
  void sent(int64_t here, int64_t there);
  /// Adds a message from there: its send time by the other clock, its arrival by this one.
  void came(int64_t there, int64_t here);
  /// Adds an event that both sides saw at about the same moment.
  void saw(int64_t here, int64_t there);

  /// Returns the nanoseconds to add to this clock to get the other's; nothing if too little is known. Returns 0 if that
  /// contradicts no message and either only messages are known or both clocks are on one machine, where 0 is exact.
  [[nodiscard]] std::optional<int64_t> nanoseconds(bool one_machine = false) const;

 private:
  static constexpr size_t kMoments = 255;
  static constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();

  int64_t most_ = kUnknown;
  int64_t least_ = -kUnknown;
  std::vector<int64_t> moments_;
};

}  // namespace lockstep::base
