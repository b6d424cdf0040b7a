// Time that a server's pushes spend in each stage. Any thread adds and asks.
#pragma once

#include <array>
#include <vector>

#include "base/durations.h"
#include "base/mutex.h"

namespace lockstep::ps {

enum class Stage : uint8_t {
  receive,  ///< from the first frame of a push to its last; the worker still computes meanwhile
  wait,     ///< waiting for others whose gradients or parameters an answer needs
  apply,    ///< making a version: summing, clipping, the optimizer
  send,     ///< sending parameters
  store     ///< making a version durable
};

class ServerTimes {
 public:
  /// Adds seconds to a stage; 0 adds no record.
  void add(Stage stage, double seconds);
  /// Stages that took time, in their order: "receive", "wait", "apply", "send", "store".
  [[nodiscard]] std::vector<base::DurationRecord> records() const;

 private:
  static constexpr size_t kStages = 5;

  mutable base::Mutex mutex_;
  std::array<base::Durations, kStages> durations_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::ps
