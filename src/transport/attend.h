// Streams without threads of their own: a Server with hands serves any number of them by so many threads. Each stream
// belongs to one hand, which alone calls its functions, one at a time, so they need no lock among themselves.
#pragma once

#include <cstdint>
#include <functional>

#include "transport/stream.h"

namespace lockstep::transport {

/// Next act of an attended stream.
enum class Next : uint8_t {
  read,  ///< reads the next frame, once all that was written is on its way
  wait,  ///< reads nothing until wake() is called, or all that was written is on its way; then `ready` is asked
  end    ///< ends in order: the peer receives all that was written
};

/// Callbacks for an attended stream. None may wait for long: the hand serves others, too. Writes do not wait,
/// from any thread: frames are sent one after another, in order. An exception ends the stream; the peer receives its
/// text.
struct Attendance {
  std::function<Next(const Frame&)> on_frame;
  std::function<Next()> ready = {};  ///< asked before a frame is read, and whenever something may have changed
  std::function<void()> on_end;      ///< called once, before the stream is destroyed
  /// True if little is said here: frames are read even while others are being sent, and other streams are preferred to
  /// have the hand alone.
  bool light = false;
};

/// Serves the stream like this from now on. Called by a handler of a Server with hands as its last act.
void attend(Stream& stream, Attendance attendance);

/// Lets the hand of an attended stream ask `ready`. Any thread, between attend() and `on_end`.
void wake(Stream& stream);

}  // namespace lockstep::transport
