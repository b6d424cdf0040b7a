#include "transport/served.h"

#include <exception>

namespace lockstep::transport {
namespace {

constexpr int kAtOnce = 64;  ///< steps of one stream before others have their turn

}  // namespace

void Served::on_event(CallStream::Tag tag) {
  if (ended_) {
    if (!closed_ && stream_.drained()) close();
    return;
  }
  try {
    if (!opened_ && (tag != CallStream::Tag::kWake || !open())) return;
    advance();
  } catch (const std::exception& error) {
    end(error.what());
  }
}

bool Served::open() {
  opened_ = true;
  handler_(stream_);
  if (!stream_.attendance()) end({});
  return !ended_;
}

void Served::advance() {
  for (int i = 0; i < kAtOnce; ++i) {
    if (!advance_once()) return;
  }
  stream_.wake();
}

bool Served::advance_once() {
  if (stream_.is_cancelled()) {
    end({});
    return false;
  }
  const Attendance& attendance = *stream_.attendance();
  const auto held_up = [&] { return !attendance.light && !stream_.drained(); };
  if (held_up()) return false;
  const Next next = attendance.ready ? attendance.ready() : Next::read;
  if (next == Next::end) end({});
  if (next != Next::read || held_up() || !stream_.next_frame_ended()) return false;
  const base::Result<Frame> frame = stream_.read();
  const Next after = frame ? attendance.on_frame(frame.value()) : Next::end;
  if (after == Next::end) end({});
  return after == Next::read;
}

void Served::end(const std::string& failure) {
  if (ended_) return;
  ended_ = true;
  failure_ = failure;
  if (stream_.attendance()) stream_.attendance()->on_end();
  on_end_();
  if (stream_.drained()) close();
}

void Served::close() {
  closed_ = true;
  stream_.start_finish(failure_);
}

}  // namespace lockstep::transport
