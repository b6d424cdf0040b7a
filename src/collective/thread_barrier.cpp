#include "collective/thread_barrier.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>
#include <thread>

#include "hwy/cache_control.h"

namespace lockstep::collective {
namespace {

using Clock = std::chrono::steady_clock;

/// Checks of the state in a poll before it reads the clock and yields the core, which an awaited thread may need.
constexpr int kLooks = 64;

}  // namespace

ThreadBarrier::Outcome ThreadBarrier::wait(Time deadline) {
  // Read before arriving: the round cannot end without this thread.
  const uint32_t before = state_.load();
  if ((before & kBroken) != 0) return Outcome::broken;
  if (arrived_.fetch_add(1) == size_ - 1) {
    arrived_.store(0);
    state_.fetch_add(kRound);
    wake();
    return Outcome::met;
  }
  if (!poll(before, deadline)) sleep(before, deadline);
  return outcome(before);
}

ThreadBarrier::Outcome ThreadBarrier::outcome(uint32_t before) const {
  const uint32_t now = state_.load();
  if (now / kRound != before / kRound) return Outcome::met;
  return (now & kBroken) != 0 ? Outcome::broken : Outcome::late;
}

bool ThreadBarrier::poll(uint32_t before, Time deadline) const {
  if (spin_.count() == 0) return false;
  const Time end = std::min(deadline, Clock::now() + spin_);
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (state_.load(std::memory_order_relaxed) != before) return true;
      hwy::Pause();
    }
    std::this_thread::yield();
  } while (Clock::now() < end);
  return false;
}

void ThreadBarrier::sleep(uint32_t before, Time deadline) {
  sleepers_.fetch_add(1);
  while (state_.load() == before) {
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
    if (left <= 0) break;
    const timespec at_most{left / 1'000'000'000, left % 1'000'000'000};
    // Returns at once if the state has changed already, so no wake-up is missed.
    syscall(SYS_futex, &state_, FUTEX_WAIT_PRIVATE, before, &at_most, nullptr, 0);
  }
  sleepers_.fetch_sub(1);
}

void ThreadBarrier::wake() {
  if (sleepers_.load() > 0) syscall(SYS_futex, &state_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void ThreadBarrier::break_up() {
  state_.fetch_or(kBroken);
  wake();
}

}  // namespace lockstep::collective
