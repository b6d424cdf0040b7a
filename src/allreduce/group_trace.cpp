#include "allreduce/group_trace.h"

#include <algorithm>

#include "base/host.h"

namespace lockstep::allreduce {

GroupTrace::GroupTrace(base::TraceTrack* track, bool one_process) : track_(track), one_process_(one_process) {
  if (track_ == nullptr) return;
  arrow_label_ = track_->tracer().label({"all-reduce", "exchange"});
  machine_ = base::machine_number();
}

void GroupTrace::restart() {
  clock_ = {};
  entered_ = exchanged_ = 0;
}

void GroupTrace::write_clock(StepTimes& times, Clock::time_point entered) const {
  if (track_ == nullptr || one_process_) return;
  times.entered = track_->tracer().since_epoch(entered);
  times.left = exchanged_;
  times.machine = machine_;
}

/// Estimates the first rank's clock from the notes.
void GroupTrace::estimate_clock(const Step& step, const StepTimes& first) {
  if (step.rank == 0 || first.entered == 0) return;
  base::Tracer& tracer = track_->tracer();
  clock_.came(first.entered, tracer.since_epoch(step.exchanged));
  if (exchanged_ != 0) {
    clock_.sent(entered_, first.left);
    clock_.saw(exchanged_, first.left);
  }
  if (!step.traced) return;
  const auto offset = clock_.nanoseconds(machine_ != 0 && machine_ == first.machine);
  if (offset) tracer.set_offset(step.first, *offset);
}

void GroupTrace::step(const Step& step, const std::vector<StepTimes>& times) {
  if (track_ == nullptr) return;
  base::Tracer& tracer = track_->tracer();
  estimate_clock(step, times.front());
  entered_ = tracer.since_epoch(step.entered);
  exchanged_ = tracer.since_epoch(step.exchanged);
  if (!step.traced) return;
  const auto later = [](const StepTimes& a, const StepTimes& b) { return a.until_exchange < b.until_exchange; };
  const auto last = static_cast<int>(std::max_element(times.begin(), times.end(), later) - times.begin());
  const auto arrow = [&](int to) { return base::flow_number({step.group, step.number, static_cast<uint64_t>(to)}); };
  // An arrow's end belongs to the span around it, so it is placed inside the wait, not at its border.
  const Clock::duration inside = std::min<Clock::duration>(base::kInsideSpan, (step.exchanged - step.entered) / 2);
  for (int to = 0; to < static_cast<int>(times.size()) && step.rank == last; ++to) {
    if (to != last) track_->flow_begin(arrow_label_, arrow(to), step.entered + inside);
  }
  if (step.rank != last) track_->flow_end(arrow_label_, arrow(step.rank), step.exchanged - inside);
}

}  // namespace lockstep::allreduce
