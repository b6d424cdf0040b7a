#include "data/chunk_ring.h"

#include <chrono>
#include <utility>

namespace lockstep::data {
namespace {

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

std::optional<ChunkRing::Request> ChunkRing::wait_for_request(uint64_t generation) {
  std::unique_lock lock(mutex_);
  space_.wait(lock, [&] { return stopped_ || generation != generation_; });
  if (stopped_) return std::nullopt;
  return Request{start_, generation_};
}

std::optional<size_t> ChunkRing::acquire(uint64_t generation) {
  std::unique_lock lock(mutex_);
  const auto free = [&] { return chunks_ - (published_.load(std::memory_order_relaxed) - released_); };
  if (!outdated(generation) && free() == 0) {
    producer_sleeps_ = true;
    space_.wait(lock, [&] { return outdated(generation) || free() >= wake_at_; });
    producer_sleeps_ = false;
  }
  if (outdated(generation)) return std::nullopt;
  return published_.load(std::memory_order_relaxed) % chunks_;
}

bool ChunkRing::publish(uint64_t generation) {
  {
    const std::lock_guard lock(mutex_);
    if (outdated(generation)) return false;
    published_.store(published_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  data_.notify_one();
  return true;
}

void ChunkRing::fail(uint64_t generation, std::exception_ptr error) {
  {
    const std::lock_guard lock(mutex_);
    if (outdated(generation)) return;
    error_ = std::move(error);
  }
  data_.notify_one();
}

void ChunkRing::request(Position start) {
  {
    const std::lock_guard lock(mutex_);
    ++generation_;
    start_ = start;
    error_ = nullptr;
    published_.store(0, std::memory_order_relaxed);
    released_ = 0;
  }
  taken_ = 0;
  space_.notify_one();
}

void ChunkRing::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  space_.notify_one();
}

/// True when a chunk came within a few microseconds.
bool ChunkRing::spin() const {
  constexpr int kTurns = 100;
  for (int turn = 0; turn < kTurns; ++turn) {
    if (published_.load(std::memory_order_acquire) > taken_) return true;
    pause_briefly();
  }
  return false;
}

size_t ChunkRing::take() {
  if (published_.load(std::memory_order_acquire) <= taken_) {
    const auto begin = std::chrono::steady_clock::now();
    if (!spin()) {
      std::unique_lock lock(mutex_);
      data_.wait(lock, [&] { return published_.load(std::memory_order_relaxed) > taken_ || error_; });
      if (published_.load(std::memory_order_relaxed) <= taken_) std::rethrow_exception(error_);
    }
    seconds_waited_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  return taken_++ % chunks_;
}

void ChunkRing::release() {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    ++released_;
    wake = producer_sleeps_ && chunks_ - (published_.load(std::memory_order_relaxed) - released_) >= wake_at_;
  }
  if (wake) space_.notify_one();
}

}  // namespace lockstep::data
