// ChunkRing: hands numbered chunks from one producer thread to one consumer thread.
//
// The ring only counts. A chunk's content belongs to the producer between `acquire` and `publish`, and to the consumer
// between `take` and `release`. Either side may also meet a restart (the consumer discards everything and requests
// another stream) or the stop. A sleeping producer is woken only when half the ring is free, so that a consumer with
// data ready rarely makes a system call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>

#include "base/mutex.h"
#include "data/plan.h"

namespace lockstep::data {

class ChunkRing {
 public:
  explicit ChunkRing(size_t chunks) : chunks_(chunks), resume_at_free_((chunks + 1) / 2), wake_at_ready_(chunks / 4) {}

  // For the producer.

  struct Request {
    std::shared_ptr<const Rounds> rounds;
    uint64_t generation = 0;
  };

  /// Waits for a request newer than `generation`; returns nothing when stopped.
  std::optional<Request> wait_for_request(uint64_t generation);

  /// Waits for a free chunk and returns its number; nothing when stopped or when a newer request exists.
  std::optional<size_t> acquire(uint64_t generation);

  /// Hands over the acquired chunk; returns false when stopped or outdated.
  bool publish(uint64_t generation);

  /// Ends the stream with an error, which `take` throws after the chunks before it are used up.
  void fail(uint64_t generation, std::exception_ptr error);

  // For the consumer.

  void request(std::shared_ptr<const Rounds> rounds);
  void stop();

  /// Waits for the next chunk and returns its number.
  size_t take();
  void release();

  [[nodiscard]] double seconds_waited() const { return seconds_waited_; }

 private:
  [[nodiscard]] bool outdated(uint64_t generation) const LOCKSTEP_REQUIRES(mutex_) {
    return stopped_ || generation != generation_;
  }
  [[nodiscard]] size_t ready() const LOCKSTEP_REQUIRES(mutex_) {
    return published_.load(std::memory_order_relaxed) - released_;
  }
  void nap(uint64_t generation) LOCKSTEP_REQUIRES(mutex_);
  [[nodiscard]] bool spin() const;

  const size_t chunks_;
  const size_t resume_at_free_;  ///< free chunks at which a sleeping producer continues
  const size_t wake_at_ready_;   ///< ready chunks at which the consumer wakes the producer

  base::Mutex mutex_;
  base::Condition space_;               ///< the producer sleeps here
  base::Condition data_;                ///< the consumer sleeps here
  std::atomic<uint64_t> published_{0};  ///< written under mutex_, also read without it by spinning
  uint64_t released_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  uint64_t generation_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<const Rounds> rounds_ LOCKSTEP_GUARDED_BY(mutex_);
  std::exception_ptr error_ LOCKSTEP_GUARDED_BY(mutex_);
  bool stopped_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  bool producer_sleeps_ LOCKSTEP_GUARDED_BY(mutex_) = false;

  // Used by the producer only.
  std::chrono::nanoseconds pace_{100'000};  ///< consumer's time per chunk

  // Used by the consumer only.
  uint64_t taken_ = 0;
  double seconds_waited_ = 0;
};

}  // namespace lockstep::data
