// Times of a member's steps, as its notes report them: load and compute of the step in flight, wait and transfer of the
// one before. Plain values; for the training thread.
#pragma once

#include <algorithm>
#include <chrono>

#include "allreduce/notes.h"

namespace lockstep::allreduce {

class StepTimer {
 public:
  using Clock = std::chrono::steady_clock;

  static double seconds(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
  }

  /// Returns the times for the note of a step that enters its exchange now. `load` and `aside` are seconds of the step.
  [[nodiscard]] StepTimes note(Clock::time_point entered, double load, double aside) const {
    StepTimes times = latest_;
    const double since = seconds(left_, entered);
    times.load = static_cast<float>(load);
    times.until_exchange = static_cast<float>(since);
    times.compute = static_cast<float>(std::max(since - load - aside, 0.0));
    return times;
  }
  /// Records the end of the step's exchange; `transfer`: seconds in operations of the group.
  void exchanged(Clock::time_point entered, Clock::time_point now, double transfer) {
    latest_.wait = static_cast<float>(seconds(entered, now));
    latest_.transfer = static_cast<float>(transfer);
  }
  /// Records that the trainer goes on: the next step begins.
  void left(Clock::time_point now) { left_ = now; }

  /// Wait and transfer of the latest step.
  [[nodiscard]] const StepTimes& latest() const { return latest_; }

 private:
  StepTimes latest_;
  Clock::time_point left_ = Clock::now();
};

}  // namespace lockstep::allreduce
