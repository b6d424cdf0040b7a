#include "data/chunk_ring.h"

#include <algorithm>
#include <utility>

namespace lockstep::data {
namespace {

using Clock = std::chrono::steady_clock;

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

std::optional<ChunkRing::Request> ChunkRing::wait_for_request(uint64_t generation) {
  const base::MutexLock lock(mutex_);
  while (!stopped_ && generation == generation_) space_.wait(mutex_);
  if (stopped_) return std::nullopt;
  return Request{rounds_, generation_};
}

std::optional<size_t> ChunkRing::acquire(uint64_t generation) {
  const base::MutexLock lock(mutex_);
  if (!outdated(generation) && ready() == chunks_) nap(generation);
  if (outdated(generation)) return std::nullopt;
  return published_.load(std::memory_order_relaxed) % chunks_;
}

/// Sleeps until enough chunks are free; measures the consumer's pace meanwhile.
void ChunkRing::nap(uint64_t generation) {
  constexpr std::chrono::nanoseconds kShortest{20'000};
  constexpr std::chrono::nanoseconds kLongest{100'000'000};
  producer_sleeps_ = true;
  const auto begin = Clock::now();
  const uint64_t released_before = released_;
  while (!outdated(generation) && chunks_ - ready() < resume_at_free_) {
    const auto missing = static_cast<int64_t>(resume_at_free_ - (chunks_ - ready()));
    space_.wait_for(mutex_, std::clamp(pace_ * missing, kShortest, kLongest));
    if (outdated(generation)) break;
    const auto used = static_cast<int64_t>(released_ - released_before);
    pace_ = std::min(kLongest, used == 0 ? pace_ * 2 : std::chrono::nanoseconds(Clock::now() - begin) / used);
  }
  producer_sleeps_ = false;
}

bool ChunkRing::publish(uint64_t generation) {
  {
    const base::MutexLock lock(mutex_);
    if (outdated(generation)) return false;
    published_.store(published_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  data_.notify_one();
  return true;
}

void ChunkRing::fail(uint64_t generation, std::exception_ptr error) {
  {
    const base::MutexLock lock(mutex_);
    if (outdated(generation)) return;
    error_ = std::move(error);
  }
  data_.notify_one();
}

void ChunkRing::request(std::shared_ptr<const Rounds> rounds) {
  {
    const base::MutexLock lock(mutex_);
    ++generation_;
    rounds_.swap(rounds);
    error_ = nullptr;
    published_.store(0, std::memory_order_relaxed);
    released_ = 0;
  }
  taken_ = 0;
  space_.notify_one();
}

void ChunkRing::stop() {
  {
    const base::MutexLock lock(mutex_);
    stopped_ = true;
  }
  space_.notify_one();
}

/// Returns true if a chunk arrives within a few microseconds.
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
    const auto begin = Clock::now();
    if (!spin()) {
      const base::MutexLock lock(mutex_);
      while (published_.load(std::memory_order_relaxed) <= taken_ && !error_) data_.wait(mutex_);
      if (published_.load(std::memory_order_relaxed) <= taken_) std::rethrow_exception(error_);
    }
    seconds_waited_ += std::chrono::duration<double>(Clock::now() - begin).count();
  }
  return taken_++ % chunks_;
}

void ChunkRing::release() {
  bool wake = false;
  {
    const base::MutexLock lock(mutex_);
    ++released_;
    wake = producer_sleeps_ && ready() <= wake_at_ready_;
    if (wake) producer_sleeps_ = false;
  }
  if (wake) space_.notify_one();
}

}  // namespace lockstep::data
