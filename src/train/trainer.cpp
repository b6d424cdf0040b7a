#include "train/trainer.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "optim/update_kernels.h"

namespace lockstep::train {
namespace {

/// By accuracy, then by loss.
bool better(const EvalRecord& a, const std::optional<EvalRecord>& b) {
  if (!b || a.accuracy > b->accuracy) return true;
  return !(a.accuracy < b->accuracy) && a.loss < b->loss;
}

/// Without the sign that a NaN may have.
std::string shown(double value) { return std::isnan(value) ? "nan" : fmt::format("{}", value); }

[[noreturn]] void throw_non_finite(const std::string& what, uint64_t step, int64_t epoch) {
  throw NonFiniteError(fmt::format("{} at step {} (epoch {}); a lower lr or a clip-norm may help", what, step, epoch));
}

bool due(uint64_t every, uint64_t step) { return every > 0 && step % every == 0; }

}  // namespace

Trainer::Trainer(Parts parts, TrainerOptions options, TrainingState state)
    : parts_(std::move(parts)), options_(options), state_(std::move(state)), saved_step_(state_.step) {
  if (options_.accumulate > 1 && parts_.micro_gradients.size() != parts_.parameters->count()) {
    throw UsageError(fmt::format("trainer: accumulating {} parameters needs as many micro gradients, got {}",
                                 parts_.parameters->count(), parts_.micro_gradients.size()));
  }
}

StopReason Trainer::run(const RunClock& clock) {
  StopReason reason = StopReason::none;
  while (reason == StopReason::none) {
    StepResult result;
    const bool more = options_.accumulate == 1 ? step(result) : accumulated_step(result);
    if (!more) return out_of_data(clock);
    account(result);
    tell_step(result, clock);
    reason = between_steps(result, clock);
  }
  state_.seconds = clock.seconds();
  return reason;
}

bool Trainer::step(StepResult& result) {
  const data::Batch* batch = parts_.loader->next();
  if (batch == nullptr) return false;
  parts_.exchange->begin({state_.step, static_cast<uint64_t>(batch->count)});
  run_batch(*batch, batch->first_row, result);
  finish_update(result);
  return true;
}

bool Trainer::accumulated_step(StepResult& result) {
  const data::Batch* batch = parts_.loader->next();
  if (batch == nullptr) return false;
  const int64_t first_count = batch->count;
  for (int64_t micro = 1; batch != nullptr; ++micro) {
    const int64_t count = batch->count;
    run_batch(*batch, result.examples + batch->first_row, result);
    const bool last = micro == options_.accumulate || batch->last_in_epoch;
    const bool sums = parts_.programs->traits().loss_over == nn::LossOver::sum;
    const float mean = sums ? 1.0F : static_cast<float>(first_count) / static_cast<float>(result.examples);
    if (micro == 1) {
      std::memcpy(parts_.parameters->gradients().data(), parts_.micro_gradients.data(),
                  parts_.micro_gradients.size_bytes());
    } else {
      add_micro_batch(count, first_count, last ? mean : 1.0F);
    }
    if (last) break;
    batch = parts_.loader->next();
    if (batch == nullptr) add_micro_batch(0, first_count, mean);
  }
  parts_.exchange->begin({state_.step, static_cast<uint64_t>(result.examples)});
  parts_.exchange->ready({0, parts_.parameters->count()}, {});
  finish_update(result);
  return true;
}

/// Means of micro-batches count by their examples, relative to the first, so that equal ones are simply added; sums are
/// added as they are.
void Trainer::add_micro_batch(int64_t count, int64_t first_count, float scale) {
  const bool sums = parts_.programs->traits().loss_over == nn::LossOver::sum;
  const float weight =
      sums ? static_cast<float>(count > 0) : static_cast<float>(count) / static_cast<float>(first_count);
  optim::add_weighted(weight, scale, parts_.micro_gradients.data(), parts_.parameters->gradients().data(),
                      parts_.micro_gradients.size(), options_.threads);
}

void Trainer::run_batch(const data::Batch& batch, int64_t first_row, StepResult& result) {
  graph::Program& program = parts_.programs->bind(batch);
  const backend::StepContext context{options_.seed, state_.step, static_cast<uint64_t>(first_row)};
  if (options_.accumulate == 1) {
    program.run(context, [this](graph::ParameterRange range) { parts_.exchange->ready(range, {}); });
  } else {
    program.run(context);
  }
  const BatchResult found = parts_.programs->result(program, batch.count);
  if (!std::isfinite(found.loss_sum)) {
    throw_non_finite("the loss became " + shown(found.loss_sum), state_.step + 1, batch.epoch + 1);
  }
  result.loss_sum += found.loss_sum;
  result.correct += found.correct;
  result.examples += batch.count;
  result.epoch = batch.epoch;
  result.last_in_epoch = batch.last_in_epoch;
}

void Trainer::finish_update(StepResult& result) {
  result.info =
      parts_.exchange
          ->finish({result.loss_sum, static_cast<uint64_t>(result.correct), static_cast<uint64_t>(result.examples)})
          .value_or_throw();
  parts_.programs->parameters_changed();
}

void Trainer::account(const StepResult& result) {
  state_.step = result.info.step;
  state_.examples += static_cast<uint64_t>(result.examples);
  state_.epoch_loss_sum += result.loss_sum;
  state_.epoch_correct += static_cast<uint64_t>(result.correct);
  state_.epoch_examples += static_cast<uint64_t>(result.examples);
  if (!result.last_in_epoch) return;
  const auto examples = static_cast<double>(state_.epoch_examples);
  state_.epoch_loss = state_.epoch_loss_sum / examples;
  state_.epoch_accuracy = static_cast<double>(state_.epoch_correct) / examples;
  state_.epoch_loss_sum = 0;
  state_.epoch_correct = state_.epoch_examples = 0;
  ++state_.epochs;
}

void Trainer::tell_step(const StepResult& result, const RunClock& clock) const {
  if (parts_.hooks.empty()) return;
  StepEvent event;
  event.step = state_.step;
  event.epoch = result.epoch + 1;
  event.loss = static_cast<float>(result.loss_sum / static_cast<double>(result.examples));
  event.correct = result.correct;
  event.examples = result.examples;
  event.examples_total = state_.examples;
  event.learning_rate = result.info.learning_rate;
  event.gradient_norm = result.info.gradient_norm;
  event.aside_seconds = state_.aside_seconds;
  event.clock = &clock;
  for (Hooks* hook : parts_.hooks) hook->on_step(event);
}

StopReason Trainer::between_steps(const StepResult& result, const RunClock& clock) {
  StopReason reason = options_.stop.check_step(state_, clock);
  const bool limit = reason != StopReason::none;
  if (parts_.interrupt != nullptr && parts_.interrupt->load(std::memory_order_relaxed) && !limit) {
    reason = StopReason::interrupted;
  }
  const bool evaluates = result.last_in_epoch || due(options_.eval_every, state_.step) || limit;
  if (evaluates && parts_.evaluator != nullptr) {
    evaluate(clock);
    const StopReason goal = options_.stop.check_goals(state_);
    if (goal != StopReason::none) reason = goal;
  }
  const uint64_t every = options_.checkpoint_every;
  const bool saves = every > 0 ? due(every, state_.step) : result.last_in_epoch;
  if (saves || reason != StopReason::none || best_so_far()) checkpoint(clock);
  return reason;
}

StopReason Trainer::out_of_data(const RunClock& clock) {
  StopReason reason = StopReason::data;
  const bool evaluates = parts_.evaluator != nullptr && !evaluated_here();
  if (evaluates) {
    evaluate(clock);
    const StopReason goal = options_.stop.check_goals(state_);
    if (goal != StopReason::none) reason = goal;
  }
  if (evaluates || saved_step_ != state_.step) checkpoint(clock);
  state_.seconds = clock.seconds();
  return reason;
}

void Trainer::evaluate(const RunClock& clock) {
  const double before = clock.seconds();
  const Metrics metrics = parts_.evaluator->run();
  if (!std::isfinite(metrics.loss)) {
    throw_non_finite("the evaluated loss became " + shown(metrics.loss), state_.step, epoch());
  }
  const EvalRecord record{state_.step, epoch(), metrics.loss, metrics.accuracy, metrics.examples};
  const bool best = better(record, state_.best_eval);
  state_.last_eval = record;
  if (best) state_.best_eval = record;
  EvalEvent event{record.step, record.epoch, record.loss, record.accuracy, record.examples, best, before, 0};
  if (!metrics.has_accuracy) event.accuracy = std::numeric_limits<double>::quiet_NaN();
  event.eval_seconds = clock.seconds() - before;
  for (Hooks* hook : parts_.hooks) hook->on_eval(event);
  state_.aside_seconds += clock.seconds() - before;
}

int64_t Trainer::epoch() const { return state_.epoch_examples == 0 ? state_.epochs : state_.epochs + 1; }

bool Trainer::evaluated_here() const { return state_.last_eval && state_.last_eval->step == state_.step; }

bool Trainer::best_so_far() const { return evaluated_here() && better(*state_.last_eval, state_.best_checkpoint); }

void Trainer::checkpoint(const RunClock& clock) {
  if (parts_.checkpointer == nullptr) return;
  const double start = clock.seconds();
  // A checkpoint of such parameters is worth nothing, and would push out good ones.
  if (!std::isfinite(optim::sum_of_squares(parts_.parameters->values(), options_.threads))) {
    throw_non_finite("the parameters became infinite or not a number", state_.step, epoch());
  }
  for (Hooks* hook : parts_.hooks) hook->before_checkpoint();
  const double before = clock.seconds();
  const bool best = best_so_far();
  if (best) state_.best_checkpoint = state_.last_eval;
  state_.data = parts_.loader->remainder();
  state_.seconds = before;
  CheckpointEvent event = parts_.checkpointer->save(state_);
  saved_step_ = state_.step;
  event.best = best;
  event.seconds = clock.seconds() - before;
  for (Hooks* hook : parts_.hooks) hook->on_checkpoint(event);
  state_.aside_seconds += clock.seconds() - start;
}

}  // namespace lockstep::train
