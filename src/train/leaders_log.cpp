#include "train/leaders_log.h"

namespace lockstep::train {

LeadersLog::LeadersLog(const RunDirectory& run, uint64_t log_every, std::function<bool()> leads)
    : run_(run), log_every_(log_every), leads_(std::move(leads)) {}

RunLog* LeadersLog::log() {
  if (!leads_()) {
    log_.reset();  // all that it had reached the disk with the last checkpoint or second
    return nullptr;
  }
  if (!log_) {
    log_.emplace(run_, log_every_, true, UINT64_MAX);
    if (start_.clock != nullptr) log_->on_start(start_);
  }
  return &*log_;
}

void LeadersLog::go_back(uint64_t step, uint64_t examples) {
  if (RunLog* to = log()) to->go_back(step, examples);
}

void LeadersLog::on_start(const StartEvent& event) { start_ = event; }

void LeadersLog::on_step(const StepEvent& event) {
  if (RunLog* to = log()) to->on_step(event);
  // Whoever takes over later counts from here.
  start_.first_step = event.step;
  start_.first_examples = event.examples_total;
  start_.first_aside_seconds = event.aside_seconds;
}

void LeadersLog::on_eval(const EvalEvent& event) {
  if (RunLog* to = log()) to->on_eval(event);
}

void LeadersLog::before_checkpoint() {
  if (RunLog* to = log()) to->before_checkpoint();
}

void LeadersLog::on_end(const Outcome& outcome) {
  if (RunLog* to = log()) to->on_end(outcome);
}

}  // namespace lockstep::train
