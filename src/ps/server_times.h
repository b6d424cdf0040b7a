// Where the time of a server's pushes goes. Any thread adds and asks.
#pragma once

#include <array>
#include <vector>

#include "base/durations.h"
#include "base/mutex.h"

namespace lockstep::ps {

enum class Stage : uint8_t {
  receive,  ///< from the first frame of a push to its last: the worker still computes meanwhile
  wait,     ///< for the others whose gradients or parameters an answer needs
  apply,    ///< a version: adding up, clipping, the optimizer
  send,     ///< parameters
  store     ///< making a version durable
};

class ServerTimes {
 public:
  /// Nothing for what took no time.
  void add(Stage stage, double seconds);
  /// Those that took time, in the order of the stages: "receive", "wait", "apply", "send", "store".
  [[nodiscard]] std::vector<base::DurationRecord> records() const;

 private:
  static constexpr size_t kStages = 5;

  mutable base::Mutex mutex_;
  std::array<base::Durations, kStages> durations_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::ps
