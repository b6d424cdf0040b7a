// Streams without a thread of their own: for connections on which little is said, however many there are.
#pragma once

#include <functional>

#include "transport/stream.h"

namespace lockstep::transport {

/// What becomes of an attended stream. Called by the server's own thread, which serves all others meanwhile: nothing
/// here may wait for long. Writes to the stream are free, from another thread.
struct Attendance {
  std::function<void(const Frame&)> on_frame;  ///< an exception ends the stream; the peer receives its text
  std::function<void()> on_end;                ///< called once, before the stream is destroyed
};

/// For a handler of a Server, as its last act: the server's own thread reads the stream from now on, and the handler's
/// thread ends.
void attend(Stream& stream, Attendance attendance);

}  // namespace lockstep::transport
