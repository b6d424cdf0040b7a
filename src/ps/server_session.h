// One stream of a parameter server: a worker's or the evaluator's data stream, or a control stream. A hand is a thread
// that serves many streams. Only the stream's hand uses the session; the server's mutex guards what others use, too. A
// request that must wait leaves `then`, which its hand calls once the wait is over; meanwhile no frame is read. An
// answer of many elements is left in `outgoing`, and sent a frame at a time.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/tracer.h"
#include "ps/control_streams.h"
#include "ps/job_types.h"
#include "ps/messages.h"
#include "transport/stream.h"

namespace lockstep::ps {

struct ServerSession {
  ServerSession(transport::Stream& s, wire::Hello h, bool for_control)
      : stream(s), hello(std::move(h)), control(for_control) {}

  transport::Stream& stream;
  const wire::Hello hello;
  const bool control;
  std::optional<ControlStreams::Entry> entry;  ///< a control stream's, once it is welcomed

  // The wait.
  SessionId id = 0;             ///< a data stream's, once it has the role (the server's mutex)
  bool claims = false;          ///< waits for the role
  std::function<bool()> until;  ///< ends the wait; without it the job does (the server's mutex)
  std::function<void()> then;   ///< called after the wait, with the mutex held; empty: it does not wait

  // The answer.
  std::optional<transport::Frame> again;       ///< to be handled once more, after the wait
  std::deque<std::function<bool()>> outgoing;  ///< each sends a frame, or returns false: it has sent all

  // The push.
  std::shared_ptr<std::vector<float>> staging;  ///< gradient being received; null before the first
  size_t staged = 0;                            ///< elements of it received so far
  Element element = Element::kFloat32;          ///< of the parameters that are sent next
  uint64_t coming = 0;                          ///< sequence number of the push being received
  double coming_since = 0;
  double received = 0;                ///< when it was complete
  double updates = 0;                 ///< seconds of updates when its wait began; then those in its wait
  base::TraceTrack* trace = nullptr;  ///< from its first traced push on
  bool traced = false;                ///< trace the complete push (the server's mutex)
};

}  // namespace lockstep::ps
