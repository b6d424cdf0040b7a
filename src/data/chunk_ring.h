// ChunkRing: the hand-over of numbered chunks from one producer thread to one consumer thread.
//
// The ring only counts; what a chunk holds belongs to the producer between `acquire` and `publish`, and to the consumer
// between `take` and `release`. Both sides may also meet a restart (the consumer discards everything and asks for
// another stream) or the stop. The producer, once asleep, is woken only when half the ring is free, so that a consumer
// with data ready rarely makes a system call.
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
  explicit ChunkRing(size_t chunks) : chunks_(chunks), enough_((chunks + 1) / 2), little_(chunks / 4) {}

  // The producer's side.

  struct Request {
    std::shared_ptr<const Rounds> rounds;
    uint64_t generation = 0;
  };

  /// Waits for a stream to be asked for that is newer than `generation`; nothing when stopped.
  std::optional<Request> wait_for_request(uint64_t generation);

  /// Waits for a free chunk and gives its number; nothing when stopped or when the request is no longer the newest.
  std::optional<size_t> acquire(uint64_t generation);

  /// Hands the acquired chunk over; false when stopped or outdated.
  bool publish(uint64_t generation);

  /// Ends the stream with an error, which `take` throws once the chunks before it are used up.
  void fail(uint64_t generation, std::exception_ptr error);

  // The consumer's side.

  void request(std::shared_ptr<const Rounds> rounds);
  void stop();

  /// Waits for the next chunk and gives its number.
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
  const size_t enough_;  ///< free chunks with which the producer goes on after a nap
  const size_t little_;  ///< ready chunks with which the consumer ends the nap

  base::Mutex mutex_;
  base::Condition space_;               ///< the producer sleeps here
  base::Condition data_;                ///< the consumer sleeps here
  std::atomic<uint64_t> published_{0};  ///< written under mutex_, also read without it, to spin on
  uint64_t released_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  uint64_t generation_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  std::shared_ptr<const Rounds> rounds_ LOCKSTEP_GUARDED_BY(mutex_);
  std::exception_ptr error_ LOCKSTEP_GUARDED_BY(mutex_);
  bool stopped_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  bool producer_sleeps_ LOCKSTEP_GUARDED_BY(mutex_) = false;

  // The producer's own.
  std::chrono::nanoseconds pace_{100'000};  ///< per chunk, as the consumer takes them

  // The consumer's own.
  uint64_t taken_ = 0;
  double seconds_waited_ = 0;
};

}  // namespace lockstep::data
