#include "allreduce/all_reduce_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/error.h"
#include "optim/update_kernels.h"
#include "schedule/all_reduce_steps.h"

namespace lockstep::allreduce {

using exchange::BatchReport;
using exchange::StepInfo;

AllReduceExchange::AllReduceExchange(program::ParameterStore& parameters, AllReduceOptions options,
                                     std::unique_ptr<Membership> membership)
    : parameters_(parameters),
      options_(std::move(options)),
      membership_(std::move(membership)),
      optimizer_(optim::make_optimizer(options_.rules.optimizer, parameters.count(), options_.rules.threads)),
      here_(options_.initial),
      tuner_(parameters.count() * sizeof(float), options_.bucket_bytes, options_.autotune),
      accounting_(options_.names),
      sender_(parameters, {options_.wire, options_.top_k, options_.bucket_bytes, options_.trace}),
      trace_(options_.trace, options_.one_process) {
  here_.live = false;
  here_.whole = true;
}

AllReduceExchange::~AllReduceExchange() {
  if (!group_.collective || end_announced_) return;
  group_.collective->abort(name_of(group_.collective->rank()) + " left the group");
}

void AllReduceExchange::begin(const exchange::StepStart& start) {
  start_ = start;
  in_step_ = true;
  const auto nominal = static_cast<float>(options_.batch * options_.accumulate);
  const bool by_examples = options_.mean && options_.mean_loss;
  sender_.begin(by_examples ? static_cast<float>(start.examples) / nominal : 1.0F, start.traced);
}

void AllReduceExchange::ready(program::ParameterRange range, exchange::Event /*event*/) { sender_.ready(range); }

Note AllReduceExchange::make_note(const BatchReport& report, Clock::time_point entered) const {
  Note note;
  note.report = report;
  note.regroup = leads_ && membership_->wants_regroup();
  if (leads_) note.stop = membership_->evaluator_stop();
  note.times = timer_.note(entered, start_.load_seconds, start_.aside_seconds);
  trace_.write_clock(note.times, entered);
  return note;
}

base::Status AllReduceExchange::complete(const Note& note) {
  base::Status done = sender_.complete(note, notes_);
  in_step_ = false;
  return done;
}

base::Result<StepInfo> AllReduceExchange::finish(const BatchReport& report) {
  const Clock::time_point entered = Clock::now();
  const base::Status done = complete(make_note(report, entered));
  const Clock::time_point exchanged = Clock::now();
  timer_.exchanged(entered, exchanged, sender_.take_seconds());
  StepInfo info;
  if (done && notes_.stop != train::StopReason::none) {
    agreed_ = notes_.stop;
    info.step = here_.step;
    info.examples_total = here_.examples;
    info.outcome = exchange::StepOutcome::ended;
    info.stop = {agreed_, name_of(notes_.stopped_by)};
    info.spent.others = StepTimer::seconds(entered, exchanged);
  } else {
    base::Result<StepInfo> made = done ? update(entered, exchanged) : repeat_step(done.failure(), entered);
    if (!made) return made;
    info = std::move(made.value());
  }
  const Clock::time_point left = Clock::now();
  timer_.left(left);
  info.entered = entered;
  info.wait_seconds = StepTimer::seconds(entered, left);
  return info;
}

base::Result<StepInfo> AllReduceExchange::repeat_step(const base::Failure& failure, Clock::time_point entered) {
  const std::string why = named(failure).message();
  const std::string line = fmt::format("step {} is repeated: {}", here_.step + 1, why);
  const bool many = group_.members.size() > schedule::kAllReduceMesh;  // then one of them says it
  if (!many) options_.log("warning", line);
  base::Result<StepInfo> next = regroup();
  if (many && (!next || leads_)) options_.log("warning", line);
  if (!next) return base::Failure(next.failure()).because(why);
  StepInfo& info = next.value();
  if (info.applied()) info.outcome = exchange::StepOutcome::retry;
  info.spent.others = StepTimer::seconds(entered, Clock::now());
  return next;
}

base::Result<StepInfo> AllReduceExchange::update(Clock::time_point entered, Clock::time_point exchanged) {
  StepInfo info;
  apply(info);
  const Clock::time_point applied = Clock::now();
  const double waited = StepTimer::seconds(entered, exchanged);
  info.spent.others = waited_for_others(waited);
  info.spent.transfer = waited - info.spent.others;
  info.spent.optimizer = StepTimer::seconds(exchanged, applied);
  trace_.step({group_.number, here_.step, group_.collective->rank(), name_of(0), entered, exchanged, start_.traced},
              notes_.times);
  account();
  if (tuner_.searching()) tune();
  if (!notes_.regroup) return info;
  base::Result<StepInfo> next = regroup();
  if (!next) return next;
  info.spent.others += StepTimer::seconds(applied, Clock::now());
  info.step = next.value().step;  // another part of the group may have been ahead
  info.examples_total = next.value().examples_total;
  info.plan = std::move(next.value().plan);
  info.batches_per_step = next.value().batches_per_step;
  info.stop = next.value().stop;
  return info;
}

double AllReduceExchange::waited_for_others(double waited) const {
  const auto mine = static_cast<size_t>(group_.collective->rank());
  float last = 0;
  for (const StepTimes& times : notes_.times) last = std::max(last, times.until_exchange);
  const double later = static_cast<double>(last) - static_cast<double>(notes_.times[mine].until_exchange);
  return later > 0 ? std::min(later, waited) : 0;
}

void AllReduceExchange::apply(StepInfo& info) {
  const bool by_examples = options_.mean && options_.mean_loss;
  const auto nominal = static_cast<float>(options_.batch * options_.accumulate);
  optim::Update update{here_.step, optim::learning_rate(options_.rules.schedule, here_.step), 1};
  if (by_examples) {
    update.gradient_scale = nominal / static_cast<float>(std::max<uint64_t>(notes_.report.examples, 1));
  } else if (options_.mean) {
    update.gradient_scale = 1.0F / static_cast<float>(std::max(notes_.contributors, 1));
  }
  info.gradient_norm = std::numeric_limits<float>::quiet_NaN();
  if (options_.rules.clip_norm > 0) {
    constexpr double kTiny = 1e-6;
    const double norm = static_cast<double>(update.gradient_scale) *
                        std::sqrt(optim::sum_of_squares(parameters_.gradients(), options_.rules.threads));
    info.gradient_norm = static_cast<float>(norm);
    update.gradient_scale *=
        static_cast<float>(std::min(1.0, static_cast<double>(options_.rules.clip_norm) / (norm + kTiny)));
  }
  optimizer_->apply(parameters_.values(), parameters_.gradients(), update);
  here_.live = true;
  ++here_.step;
  rounds_ += start_.batches;
  here_.examples += notes_.report.examples;
  info.step = here_.step;
  info.learning_rate = update.learning_rate;
  info.group = notes_.report;
  info.examples_total = here_.examples;
}

void AllReduceExchange::account() {
  const auto batches = static_cast<uint64_t>(start_.batches);
  for (const StragglerEvent& event :
       accounting_.step(here_.step, batches, notes_, timer_.latest(), group_.members, *group_.collective)) {
    if (leads_) options_.log(event.over ? "info" : "warning", event.text);
  }
}

void AllReduceExchange::tune() {
  const StepTimes& first = notes_.times.front();
  const size_t bytes = tuner_.step(static_cast<double>(first.load + first.compute + first.wait));
  if (bytes != sender_.bucket_bytes()) accounting_.restart_stragglers(group_.members);
  sender_.cut(bytes);
  if (tuner_.settled() && leads_ && options_.events != nullptr) options_.events->bucket_size_found(bytes);
}

Communication AllReduceExchange::communication() const {
  Communication communication = accounting_.communication();
  communication.bucket_bytes = sender_.bucket_bytes();
  communication.buckets = sender_.buckets();
  return communication;
}

}  // namespace lockstep::allreduce
