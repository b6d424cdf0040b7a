// What a trace shows of a group: in each traced step an arrow from the member that came last to all others, and how far
// this member's clock is from the first rank's. Does nothing where there is no trace. Borrows the trace; for the
// training thread.
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

  /// `track` of the training thread; null: no trace. `one_process`: members are threads that share a tracer, and so a
  /// clock.
  GroupTrace(base::TraceTrack* track, bool one_process);

  /// Another group: what was known of clocks is void.
  void restart();
  /// What a note tells of this member's clock; the exchange is entered now.
  void tell(StepTimes& times, Clock::time_point entered) const;

  /// A step of a group, as its trace needs it.
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
  base::ClockOffset clock_;  ///< of the first rank
  int64_t entered_ = 0;      ///< of the step before, by this clock
  int64_t exchanged_ = 0;
};

}  // namespace lockstep::allreduce
