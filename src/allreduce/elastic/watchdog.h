// Ends waits on a stream that take too long or are interrupted, because reads of a stream have no deadline. One thread
// arms it; the watchdog's own thread cancels.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "transport/stream.h"

namespace lockstep::allreduce::elastic {

class Watchdog {
 public:
  /// `interrupt` may be null.
  explicit Watchdog(const std::atomic<bool>* interrupt);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// Cancels `stream` after `at_most`, or when the interrupt comes. Replaces the stream watched before; null: none.
  void watch(transport::Stream* stream, std::chrono::milliseconds at_most = std::chrono::milliseconds{5000});
  [[nodiscard]] bool interrupted() const { return interrupt_ != nullptr && interrupt_->load(); }
  /// Waits, unless interrupted.
  void pause(std::chrono::milliseconds at_most) const;

 private:
  void run();

  const std::atomic<bool>* interrupt_;
  base::Mutex mutex_;
  base::Condition wake_;
  bool stopping_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  transport::Stream* stream_ LOCKSTEP_GUARDED_BY(mutex_) = nullptr;
  std::chrono::milliseconds limit_ LOCKSTEP_GUARDED_BY(mutex_){0};
  std::chrono::steady_clock::time_point until_ LOCKSTEP_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace lockstep::allreduce::elastic
