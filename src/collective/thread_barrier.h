// A barrier for the threads of an in-process group. A wait polls for a while, then sleeps. It ends when all threads
// have arrived, when the barrier is broken, or at its deadline. Any thread may break it; it stays broken.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace lockstep::collective {

class ThreadBarrier {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Outcome : uint8_t { met, broken, late };

  ThreadBarrier(int size, std::chrono::nanoseconds spin) : size_(size), spin_(spin) {}

  /// Returns `met` if all threads arrived, even if the barrier was broken after that. After `late` the caller must
  /// break it.
  Outcome wait(Time deadline);
  void break_up();
  [[nodiscard]] bool broken() const { return (state_.load() & kBroken) != 0; }

 private:
  static constexpr uint32_t kBroken = 1;
  static constexpr uint32_t kRound = 2;

  Outcome outcome(uint32_t before) const;
  bool poll(uint32_t before, Time deadline) const;
  void sleep(uint32_t before, Time deadline);
  void wake();

  int size_;
  std::chrono::nanoseconds spin_;
  alignas(64) std::atomic<int> arrived_ = 0;
  alignas(64) std::atomic<uint32_t> state_ = 0;  // counts rounds in steps of kRound; sleepers wait for it to change
  alignas(64) std::atomic<int> sleepers_ = 0;
};

}  // namespace lockstep::collective
