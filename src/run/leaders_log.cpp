#include "run/leaders_log.h"

namespace lockstep::run {

LeadersLog::LeadersLog(const RunDirectory& run, uint64_t log_every, std::function<bool()> leads)
    : run_(run), log_every_(log_every), leads_(std::move(leads)) {}

RunLog* LeadersLog::log(uint64_t step, uint64_t evaluated) {
  if (!leads_()) return nullptr;
  if (!log_) {
    log_.emplace(run_, log_every_, RunLog::Kept{step, evaluated});
    if (start_.clock != nullptr) log_->on_start(start_);
    log_->go_on_from(mark_);
  }
  return &*log_;
}

void LeadersLog::close() {
  if (log_) log_->flush();
  log_.reset();
}

void LeadersLog::go_back(uint64_t step, uint64_t examples) {
  mark_.step = step;
  mark_.examples = examples;
  if (RunLog* to = log(step, step)) to->go_back(step, examples);
}

void LeadersLog::on_start(const train::StartEvent& event) {
  start_ = event;
  mark_ = {event.first_step, event.first_examples, event.clock->seconds(), event.first_aside_seconds};
}

void LeadersLog::on_step(const train::StepEvent& event) {
  const uint64_t before = event.step - 1;
  if (mark_.step != before) {  // this process was away for the steps between
    mark_.step = before;
    mark_.examples = event.examples_total - static_cast<uint64_t>(event.examples);
  }
  if (RunLog* to = log(before, before)) to->on_step(event);
  mark_ = {event.step, event.examples_total, event.clock->seconds(), event.aside_seconds};
}

void LeadersLog::on_eval(const train::EvalEvent& event) {
  if (RunLog* to = log(event.step, event.step - 1)) to->on_eval(event);
}

void LeadersLog::before_checkpoint() {
  if (RunLog* to = log(mark_.step, mark_.step)) to->before_checkpoint();
}

void LeadersLog::on_end(const train::Outcome& outcome) {
  if (RunLog* to = log(outcome.steps, outcome.steps)) to->on_end(outcome);
}

}  // namespace lockstep::run
