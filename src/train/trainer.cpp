#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>

#include "optim/update_kernels.h"
#include "train/non_finite.h"
#include "train/pace.h"

namespace lockstep::train {
namespace {

double seconds_since(RunClock::Clock::time_point start) {
  return std::chrono::duration<double>(RunClock::Clock::now() - start).count();
}

}  // namespace

Trainer::Trainer(Parts parts, TrainerOptions options, checkpoint::TrainingState state)
    : parts_(std::move(parts)),
      options_(options),
      state_(std::move(state)),
      saved_step_(state_.step),
      aside_told_(state_.aside_seconds),
      batches_per_step_(options_.accumulate),
      trace_(parts_.trace, options_.trace_steps) {
  if (options_.accumulate > 1 && parts_.micro_gradients.size() != parts_.parameters->count()) {
    throw UsageError(fmt::format("trainer: accumulating {} parameters needs as many micro gradients, got {}",
                                 parts_.parameters->count(), parts_.micro_gradients.size()));
  }
}

StopReason Trainer::run(const RunClock& clock) {
  if (const auto group = parts_.exchange->join().value_or_throw()) follow(*group);
  led_ = leads();
  ended_ = Clock::now();
  StopReason reason = StopReason::none;
  try {
    do {
      reason = train_share(clock);
    } while (leave(reason, clock));
    reason = close(reason, clock);
  } catch (const NonFiniteError&) {
    static_cast<void>(parts_.exchange->leave({StopReason::not_finite}));
    throw;
  }
  state_.seconds = clock.seconds();
  return reason;
}

void Trainer::follow(const exchange::StepInfo& info) {
  state_.step = info.step;
  if (info.examples_total > 0) state_.examples = info.examples_total;
  take_plan(info);
  parts_.programs->parameters_changed();
  group_stop_ = info.stop_reason();
  missed_end_ = info.outcome == exchange::StepOutcome::missed;
}

void Trainer::take_plan(const exchange::StepInfo& info) {
  if (!info.plan) return;
  parts_.loader->restart(*info.plan);
  dropped_ = nullptr;
  batches_per_step_ = std::max<int64_t>(info.batches_per_step, 1);
  if (options_.total_of_plan) options_.total_steps = options_.total_of_plan(*info.plan, info.step);
  // Data left over from an earlier pass comes first, before the end of that pass is reached again.
  if (options_.epoch_is_pass) state_.epochs = info.plan->data.first_pass();
}

StopReason Trainer::train_share(const RunClock& clock) {
  if (group_stop_ != StopReason::none) return group_stop_;
  // A worker that joins after all data is assigned has nothing to do.
  StopReason reason = options_.stop.check_counts(state_);
  while (reason == StopReason::none) {
    const uint64_t before = state_.step;
    StepResult result;
    const bool more = parts_.micro_gradients.empty() ? step(result) : accumulated_step(result);
    if (!more) return StopReason::data;
    if (!result.info.applied()) {
      const auto& stop = result.info.stop;
      if (stop && stop->reason == StopReason::not_finite && !stop->by.empty()) {
        throw_non_finite("the loss became infinite or not a number on " + stop->by, before + 1, result.epoch + 1);
      }
      follow(result.info);
      reason = stop ? stop->reason : options_.stop.check_counts(state_);
      continue;
    }
    account(result);
    tell_step(result, clock);
    reason = between_steps(result, before, clock);
    take_plan(result.info);
  }
  return reason;
}

bool Trainer::leave(StopReason reason, const RunClock& clock) {
  exchange::Farewell farewell{reason};
  // Members other than the leader report their final evaluation, even if all evaluate during training.
  const bool own_result =
      parts_.checkpointer == nullptr && parts_.evaluator != nullptr && !evaluated_here() && !missed_end_;
  if (own_result && reason != StopReason::interrupted) evaluate(clock);
  if (state_.last_eval) {
    farewell.loss = state_.last_eval->loss;
    if (parts_.programs->traits().accuracy) farewell.accuracy = state_.last_eval->accuracy;
  }
  const Clock::time_point before = Clock::now();
  const auto more = parts_.exchange->leave(farewell).value_or_throw();
  if (!options_.who.empty()) spend(Phase::others, seconds_since(before));
  parts_.programs->parameters_changed();
  if (more) follow(*more);
  return more.has_value();
}

void Trainer::notice_leadership() {
  const bool leads_now = leads();
  if (leads_now && !led_) parts_.checkpointer->take_over(state_);
  led_ = leads_now;
}

StopReason Trainer::close(StopReason reason, const RunClock& clock) {
  notice_leadership();
  if (!leads() && !options_.who.empty()) return reason;  // another member writes the final checkpoint
  if (!take_snapshot(Phase::checkpoint)) throw Error("cannot get the final state from the group");
  const bool evaluates = parts_.evaluator != nullptr && !evaluated_here() && reason != StopReason::interrupted;
  if (evaluates) {
    evaluate(clock);
    const StopReason goal = options_.stop.check_goals(state_);
    if (goal != StopReason::none) reason = goal;
  }
  if (evaluates || saved_step_ != state_.step) checkpoint(clock);
  return reason;
}

bool Trainer::leads() const { return parts_.checkpointer != nullptr && parts_.exchange->leads(); }

void Trainer::begin(uint64_t examples, int64_t batches, double load_seconds) {
  spend(Phase::data, load_seconds);
  const double aside = state_.aside_seconds - std::exchange(aside_told_, state_.aside_seconds);
  parts_.exchange->begin({state_.step, examples, batches, load_seconds, aside, trace_.on()});
}

const data::Batch* Trainer::next_batch() {
  if (dropped_ != nullptr) return std::exchange(dropped_, nullptr);
  if (!trace_.on()) return parts_.loader->next();
  const Clock::time_point before = Clock::now();
  const data::Batch* batch = parts_.loader->next();
  trace_.phase(Phase::data, before, Clock::now());
  return batch;
}

bool Trainer::step(StepResult& result) {
  const double waited = parts_.loader->seconds_waited();
  const data::Batch* batch = next_batch();
  if (batch == nullptr) return false;
  begin(static_cast<uint64_t>(batch->count), 1, parts_.loader->seconds_waited() - waited);
  run_batch(*batch, batch->first_row, result);
  finish_update(result);
  dropped_ = result.info.applied() ? nullptr : batch;
  return true;
}

bool Trainer::accumulated_step(StepResult& result) {
  const double waited = parts_.loader->seconds_waited();
  const data::Batch* batch = next_batch();
  if (batch == nullptr) return false;
  const data::Batch* const first = batch;
  const bool sums = parts_.programs->traits().loss_over == nn::LossOver::sum;
  int64_t first_count = 0;  // examples of the first batch that is not empty
  int64_t rows = 0;         // rows of all members, in earlier rounds
  int64_t batches = 0;
  while (batch != nullptr) {
    ++batches;
    const int64_t count = batch->count;
    run_batch(*batch, rows + batch->first_row, result);
    rows += batch->global_count;
    const bool last = batches == batches_per_step_ || batch->last_in_epoch;
    batch = last ? nullptr : next_batch();
    const Clock::time_point before = Clock::now();
    if (first_count > 0 && (count > 0 || batch == nullptr)) {
      const float mean = static_cast<float>(first_count) / static_cast<float>(result.examples);
      add_micro_batch(count, first_count, batch == nullptr && !sums ? mean : 1.0F);
    } else if (count > 0) {
      first_count = count;
      std::memcpy(parts_.parameters->gradients().data(), parts_.micro_gradients.data(),
                  parts_.micro_gradients.size_bytes());
    }
    spend(Phase::backward, seconds_since(before));
  }
  begin(static_cast<uint64_t>(result.examples), batches, parts_.loader->seconds_waited() - waited);
  if (result.examples > 0) parts_.exchange->ready({0, parts_.parameters->count()}, {});
  finish_update(result);
  dropped_ = result.info.applied() || batches > 1 ? nullptr : first;
  return true;
}

/// Adds a micro-batch. Means count by their examples, relative to the first, so that equal batches are simply added;
/// sums are added unchanged.
void Trainer::add_micro_batch(int64_t count, int64_t first_count, float scale) {
  const bool sums = parts_.programs->traits().loss_over == nn::LossOver::sum;
  const float weight =
      sums ? static_cast<float>(count > 0) : static_cast<float>(count) / static_cast<float>(first_count);
  optim::add_weighted(weight, scale, parts_.micro_gradients.data(), parts_.parameters->gradients().data(),
                      parts_.micro_gradients.size(), options_.threads);
}

void Trainer::run_batch(const data::Batch& batch, int64_t first_row, StepResult& result) {
  result.epoch = batch.epoch;
  result.last_in_epoch = batch.last_in_epoch;
  if (batch.count == 0) return;
  program::Program& program = parts_.programs->bind(batch);
  const backend::StepContext context{options_.seed, state_.step, static_cast<uint64_t>(first_row)};
  const bool accumulates = !parts_.micro_gradients.empty();
  if (!accumulates && !std::exchange(divided_, true)) parts_.exchange->divide_updates(program.gradient_shares());
  const auto announce = [&](program::ParameterRange range) {
    if (!accumulates) parts_.exchange->ready(range, {});
  };
  if (trace_.on()) {
    trace_.run(program, context, announce);
  } else {
    program.run(context, announce);
  }
  spend(Phase::forward, program.times().forward);
  spend(Phase::backward, program.times().backward);
  const BatchResult found = parts_.programs->result(program, batch.count);
  if (!std::isfinite(found.loss_sum)) {
    throw_non_finite("the loss became " + shown(found.loss_sum) + options_.who, state_.step + 1, batch.epoch + 1);
  }
  result.loss_sum += found.loss_sum;
  result.correct += found.correct;
  result.examples += batch.count;
}

void Trainer::finish_update(StepResult& result) {
  result.info =
      parts_.exchange
          ->finish({result.loss_sum, static_cast<uint64_t>(result.correct), static_cast<uint64_t>(result.examples)})
          .value_or_throw();
  spend(result.info.spent);
  trace_.exchanged(result.info);
  parts_.programs->parameters_changed();
}

void Trainer::spend(const exchange::Spent& spent) {
  // The time of sends during the backward pass is not part of it.
  if (parts_.micro_gradients.empty()) spend(Phase::backward, -spent.early_push);
  spend(Phase::push, spent.early_push + spent.push);
  spend(Phase::pull, spent.pull);
  spend(Phase::transfer, spent.transfer);
  spend(Phase::others, spent.others);
  spend(Phase::optimizer, spent.optimizer);
}

Trainer::Clock::time_point Trainer::close_phases() {
  const Clock::time_point before = std::exchange(ended_, Clock::now());
  const double known = std::accumulate(phases_.begin(), phases_.end(), -closed_);
  const double passed = std::chrono::duration<double>(ended_ - before).count();
  spend(Phase::rest, std::max(passed - known, 0.0));
  closed_ = std::accumulate(phases_.begin(), phases_.end(), 0.0);
  return before;
}

void Trainer::account(const StepResult& result) {
  const exchange::BatchReport& group = result.info.group;
  state_.step = result.info.step;
  const uint64_t total = result.info.examples_total;
  state_.examples = total > 0 ? total : state_.examples + group.examples;
  state_.epoch_loss_sum += group.loss_sum;
  state_.epoch_correct += group.correct;
  state_.epoch_examples += group.examples;
  if (!result.last_in_epoch) return;
  const auto examples = static_cast<double>(std::max<uint64_t>(state_.epoch_examples, 1));
  state_.epoch_loss = state_.epoch_loss_sum / examples;
  state_.epoch_accuracy = static_cast<double>(state_.epoch_correct) / examples;
  state_.epoch_loss_sum = 0;
  state_.epoch_correct = state_.epoch_examples = 0;
  state_.epochs = result.epoch + 1;
}

void Trainer::tell_step(const StepResult& result, const RunClock& clock) {
  const exchange::BatchReport& group = result.info.group;
  const Clock::time_point before = close_phases();
  trace_.step(state_.step, before, ended_);
  if (parts_.hooks.empty() || group.examples == 0) return;
  StepEvent event;
  event.step = state_.step;
  event.total_steps = options_.total_steps;
  event.epoch = result.epoch + 1;
  event.loss = static_cast<float>(group.loss_sum / static_cast<double>(group.examples));
  event.correct = static_cast<int64_t>(group.correct);
  event.examples = static_cast<int64_t>(group.examples);
  event.own_examples = result.examples;
  event.examples_total = state_.examples;
  event.learning_rate = result.info.learning_rate;
  event.gradient_norm = result.info.gradient_norm;
  event.aside_seconds = state_.aside_seconds;
  event.staleness = result.info.staleness;
  event.wait_seconds = result.info.wait_seconds;
  event.phases = std::exchange(phases_, {});
  closed_ = 0;
  event.clock = &clock;
  for (Hooks* hook : parts_.hooks) hook->on_step(event);
}

StopReason Trainer::between_steps(const StepResult& result, uint64_t step_before, const RunClock& clock) {
  notice_leadership();
  StopReason reason = options_.stop.check_step(state_, clock);
  if (result.info.stop) reason = result.info.stop->reason;
  if (reason != StopReason::none) return reason;
  const bool interrupted = parts_.interrupt != nullptr && parts_.interrupt->load(std::memory_order_relaxed);
  const bool evaluates = parts_.evaluator != nullptr && !options_.evaluates_at_the_end_only &&
                         parts_.exchange->leads() &&
                         (result.last_in_epoch || due(options_.eval_every, step_before, state_.step));
  const uint64_t every = options_.checkpoint_every;
  const bool saves =
      leads() && !interrupted && (every > 0 ? due(every, step_before, state_.step) : result.last_in_epoch);
  if ((evaluates || saves) && !take_snapshot(saves ? Phase::checkpoint : Phase::evaluation)) return reason;
  if (evaluates) {
    evaluate(clock);
    reason = options_.stop.check_goals(state_);
  }
  if (saves || (evaluates && reason == StopReason::none && best_so_far())) checkpoint(clock);
  return reason == StopReason::none && interrupted ? StopReason::interrupted : reason;
}

}  // namespace lockstep::train
