#include "train/step_trace.h"

#include "ops/op_table.h"

namespace lockstep::train {

StepTrace::StepTrace(base::TraceTrack* track, std::optional<uint64_t> steps) : track_(track), steps_(steps) {
  if (track_ == nullptr) return;
  base::Tracer& tracer = track_->tracer();
  step_label_ = tracer.label({"step", "step", {}, "step"});
  for (size_t i = 0; i < kPhases; ++i) {
    phase_labels_[i] = tracer.label({std::string(text(static_cast<Phase>(i))), "phase"});
  }
  look();
}

void StepTrace::look() {
  const bool due = steps_ && made_ >= kSkipped && (*steps_ == 0 || made_ - kSkipped < *steps_);
  if (steps_) track_->tracer().turn(due);
  on_ = track_->on();
}

void StepTrace::step(uint64_t number, Clock::time_point begin, Clock::time_point end) {
  if (track_ == nullptr) return;
  if (on_) track_->span(step_label_, begin, end, number);
  ++made_;
  look();
}

void StepTrace::phase(Phase phase, Clock::time_point begin, Clock::time_point end) {
  if (on_) track_->span(phase_labels_[static_cast<size_t>(phase)], begin, end);
}

void StepTrace::exchanged(const exchange::StepInfo& info) {
  if (!on_) return;
  const exchange::Spent& spent = info.spent;
  Clock::time_point begin = info.entered;
  const auto add = [&](Phase which, double seconds) {
    if (!(seconds > 0)) return;
    const Clock::time_point end =
        begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    phase(which, begin, end);
    begin = end;
  };
  const bool clips = spent.push > 0;  // before it sends
  if (clips) add(Phase::optimizer, spent.optimizer);
  add(Phase::push, spent.push);
  add(Phase::others, spent.others);
  add(Phase::pull, spent.pull);
  add(Phase::transfer, spent.transfer);
  if (!clips) add(Phase::optimizer, spent.optimizer);
}

const StepTrace::Labels& StepTrace::labels_of(const program::Program& program) {
  const auto [found, is_new] = kernels_.try_emplace(&program);
  if (is_new) {
    for (const program::KernelInfo& kernel : program.kernels()) {
      found->second.push_back(track_->tracer().label({kernel.name,
                                                      "op",
                                                      {{"op", std::string(ops::name(kernel.op))},
                                                       {"implementation", kernel.implementation},
                                                       {"shape", kernel.type.shape.str()},
                                                       {"layout", kernel.layout.str()}}}));
    }
  }
  return found->second;
}

void StepTrace::run(program::Program& program, const backend::StepContext& context,
                    base::FunctionRef<void(program::ParameterRange)> announce) {
  const Labels& labels = labels_of(program);
  // Records forward and backward in the order of the kernels, with the gaps between them.
  Clock::time_point began = Clock::now();
  bool backward = false;
  const auto turn = [&](Clock::time_point now) {
    phase(backward ? Phase::backward : Phase::forward, began, now);
    began = now;
    backward = !backward;
  };
  program.run_observed(context, announce, [&](size_t kernel, Clock::time_point begin, Clock::time_point end) {
    if (program.kernels()[kernel].backward != backward) turn(begin);
    track_->span(labels[kernel], begin, end);
  });
  turn(Clock::now());
}

}  // namespace lockstep::train
