// Cuts the gradients of a step into the buckets that a worker pushes to parameter servers, in the order of their
// announcements: neighbours in the buffer become one bucket, which is sent once it is large enough. Plain values;
// allocates nothing.
#pragma once

#include "schedule/range.h"

namespace lockstep::schedule {

class PushBuckets {
 public:
  /// `bytes`: size in float32 from which on a bucket is sent
  explicit PushBuckets(size_t bytes) : bytes_(bytes) {}

  /// Begins a step: no gradient is announced.
  void begin() { open_ = {}; }

  /// Adds final gradients, and calls `send` with each bucket to send now.
  template <typename Send>
  void announced(ParameterRange range, Send send) {
    if (open_.count == 0) {
      open_ = range;
    } else if (range.offset + range.count == open_.offset) {
      open_ = {range.offset, range.count + open_.count};
    } else if (open_.offset + open_.count == range.offset) {
      open_.count += range.count;
    } else {
      send(open_);
      open_ = range;
    }
    if (open_.count * sizeof(float) < bytes_) return;
    send(open_);
    open_ = {};
  }

  /// Returns the announced gradients that were not sent yet; they go with the end of the push.
  [[nodiscard]] ParameterRange rest() const { return open_; }

 private:
  size_t bytes_;
  ParameterRange open_;
};

}  // namespace lockstep::schedule
