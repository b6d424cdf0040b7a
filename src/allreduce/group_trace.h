// The group in a trace: in each traced step an arrow from the last member to arrive to all others, and the offset of
// this member's clock from the first rank's. Does nothing without a trace. Borrows the trace; for the training thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "allreduce/notes.h"
#include "base/clock_offset.h"
#include "base/tracer.h"

namespace lockstep::allreduce {

class GroupTrace {
 public:
  using Clock = std::chrono::steady_clock;

  /// `track`: of the training thread; null: no trace. `one_process`: members are threads that share a tracer, and so a
  /// clock.
  GroupTrace(base::TraceTrack* track, bool one_process);

  /// Begins another group: forgets the clock offsets.
  void restart();
  /// Fills in this member's clock for its note; it enters the exchange now.
  void write_clock(StepTimes& times, Clock::time_point entered) const;

  /// A step of a group, as the trace needs it.
  struct Step {
    uint64_t group = 0;
    uint64_t number = 0;
    int rank = 0;
    const std::string& first;  ///< name of the first rank
    Clock::time_point entered;
    Clock::time_point exchanged;
    bool traced = false;
  };
  void step(const Step& step, const std::vector<StepTimes>& times);

 private:
  void estimate_clock(const Step& step, const StepTimes& first);

  base::TraceTrack* track_;
  bool one_process_;
  const base::TraceLabel* arrow_label_ = nullptr;
  uint32_t machine_ = 0;
  base::ClockOffset clock_;  ///< offset of the first rank's clock
  int64_t entered_ = 0;      ///< time by this clock at which the step before entered the exchange
  int64_t exchanged_ = 0;
};

}  // namespace lockstep::allreduce
