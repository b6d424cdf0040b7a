// A trainer's work between steps: snapshots, evaluations, checkpoints.
#include <cmath>
#include <limits>
#include <utility>

#include "optim/update_kernels.h"
#include "train/non_finite.h"
#include "train/trainer.h"

namespace lockstep::train {
bool Trainer::take_snapshot(Phase phase) {
  if (!leads()) return true;
  const Clock::time_point before = Clock::now();
  base::Result<exchange::Snapshot> taken = parts_.exchange->snapshot();
  const Clock::time_point after = Clock::now();
  spend(phase, std::chrono::duration<double>(after - before).count());
  trace_.phase(phase, before, after);
  if (!taken) return false;
  snapshot_ = std::move(taken.value());
  if (!snapshot_.progress) {
    state_.data = parts_.loader->remainder();
    return true;
  }
  state_.step = snapshot_.step;
  state_.examples = snapshot_.progress->examples;
  state_.data = snapshot_.progress->data;
  parts_.programs->parameters_changed();
  return true;
}

void Trainer::evaluate(const RunClock& clock) {
  const Clock::time_point began = Clock::now();
  const double before = clock.seconds();
  const Metrics metrics = parts_.evaluator->run();
  if (!std::isfinite(metrics.loss)) {
    throw_non_finite("the evaluated loss became " + shown(metrics.loss), state_.step, epoch());
  }
  const checkpoint::EvalRecord record{state_.step, epoch(), metrics.loss, metrics.accuracy, metrics.examples};
  const bool best = is_better(record, state_.best_eval);
  state_.last_eval = record;
  if (best) state_.best_eval = record;
  EvalEvent event{record.step, record.epoch, record.loss, record.accuracy, record.examples, best, before, 0};
  if (!metrics.has_accuracy) event.accuracy = std::numeric_limits<double>::quiet_NaN();
  event.eval_seconds = clock.seconds() - before;
  for (Hooks* hook : parts_.hooks) hook->on_eval(event);
  const double took = clock.seconds() - before;
  state_.aside_seconds += took;
  spend(Phase::evaluation, took);
  trace_.phase(Phase::evaluation, began, Clock::now());
}

int64_t Trainer::epoch() const { return state_.epoch_examples == 0 ? state_.epochs : state_.epochs + 1; }

bool Trainer::evaluated_here() const { return state_.last_eval && state_.last_eval->step == state_.step; }

bool Trainer::best_so_far() const { return evaluated_here() && is_better(*state_.last_eval, state_.best_checkpoint); }

void Trainer::checkpoint(const RunClock& clock) {
  if (!leads()) return;
  const Clock::time_point began = Clock::now();
  const double start = clock.seconds();
  // A checkpoint of such parameters is useless, and would displace good ones.
  if (!std::isfinite(optim::sum_of_squares(parts_.parameters->values(), options_.threads))) {
    throw_non_finite("the parameters became infinite or not a number", state_.step, epoch());
  }
  for (Hooks* hook : parts_.hooks) hook->before_checkpoint();
  const double before = clock.seconds();
  const bool best = best_so_far();
  const std::optional<checkpoint::EvalRecord> best_before = state_.best_checkpoint;
  if (best) state_.best_checkpoint = state_.last_eval;
  state_.seconds = before;
  CheckpointEvent event = parts_.checkpointer->save(state_, snapshot_);
  if (event.file.empty()) {  // another group has gone on: the next exchange tells
    state_.best_checkpoint = best_before;
    return;
  }
  parts_.exchange->saved();
  saved_step_ = state_.step;
  event.best = best;
  event.seconds = clock.seconds() - before;
  for (Hooks* hook : parts_.hooks) hook->on_checkpoint(event);
  const double took = clock.seconds() - start;
  state_.aside_seconds += took;
  spend(Phase::checkpoint, took);
  trace_.phase(Phase::checkpoint, began, Clock::now());
}

}  // namespace lockstep::train
