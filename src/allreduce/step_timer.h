// Where the time of a member's steps goes, as its notes tell the others: load and compute of the step under way, wait
// and transfer of the one before. Plain values; for the training thread.
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

  /// For the note of a step whose exchange is entered now; `load` and `aside` are its seconds of these kinds.
  [[nodiscard]] StepTimes note(Clock::time_point entered, double load, double aside) const {
    StepTimes times = latest_;
    const double since = seconds(left_, entered);
    times.load = static_cast<float>(load);
    times.came = static_cast<float>(since);
    times.compute = static_cast<float>(std::max(since - load - aside, 0.0));
    return times;
  }
  /// The step's exchange is over; `transfer`: seconds in operations of the group.
  void exchanged(Clock::time_point entered, Clock::time_point now, double transfer) {
    latest_.wait = static_cast<float>(seconds(entered, now));
    latest_.transfer = static_cast<float>(transfer);
  }
  /// The trainer goes on: the next step begins.
  void left(Clock::time_point now) { left_ = now; }

  /// Wait and transfer of the latest step.
  [[nodiscard]] const StepTimes& latest() const { return latest_; }

 private:
  StepTimes latest_;
  Clock::time_point left_ = Clock::now();
};

}  // namespace lockstep::allreduce
