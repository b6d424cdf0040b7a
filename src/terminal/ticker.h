// Ticker: tells when an interval has passed, and asks the clock only once in many calls. The number of calls between
// two looks at the clock follows the pace of the calls: a call costs about a nanosecond at 300,000 calls per second and
// is still on time at one call per second.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace lockstep::terminal {

class Ticker {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Ticker(std::chrono::milliseconds interval) : interval_(interval) { restart(); }

  /// Returns whether the interval has passed; if so, starts the next one.
  bool due() { return --countdown_ <= 0 && look(); }

  void restart() { last_look_ = last_tick_ = Clock::now(); }

 private:
  bool look() {
    const Clock::time_point now = Clock::now();
    const double wanted = std::chrono::duration<double>(interval_).count() / kLooksPerInterval;
    const double taken = std::max(std::chrono::duration<double>(now - last_look_).count(), 1e-9);
    const double factor = std::min(wanted / taken, 2.0);
    stride_ = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(stride_) * factor));
    countdown_ = stride_;
    last_look_ = now;
    if (now - last_tick_ < interval_) return false;
    last_tick_ = now;
    return true;
  }

  static constexpr double kLooksPerInterval = 8;

  std::chrono::milliseconds interval_;
  Clock::time_point last_look_;
  Clock::time_point last_tick_;
  int64_t stride_ = 1;
  int64_t countdown_ = 1;
};

}  // namespace lockstep::terminal
