#include "allreduce/all_reduce_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/host.h"
#include "lockstep/error.h"
#include "optim/update_kernels.h"
#include "transport/convert.h"

namespace lockstep::allreduce {
namespace {

using exchange::BatchReport;
using exchange::StepInfo;

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

transport::Element wire_element(collective::Element element) {
  return element == collective::Element::bfloat16 ? transport::Element::kBfloat16 : transport::Element::kFloat16;
}

}  // namespace

AllReduceExchange::AllReduceExchange(graph::ParameterStore& parameters, AllReduceOptions options,
                                     std::unique_ptr<Membership> membership)
    : parameters_(parameters),
      options_(std::move(options)),
      membership_(std::move(membership)),
      optimizer_(optim::make_optimizer(options_.rules.optimizer, parameters.count(), options_.rules.threads)),
      step_(options_.initial.step),
      examples_(options_.initial.examples),
      tuned_(!options_.autotune),
      default_bucket_bytes_(options_.bucket_bytes),
      buckets_(parameters.count(), options_.bucket_bytes),
      records_(options_.names.size()),
      stragglers_(options_.names) {
  if (options_.top_k > 0) top_k_.emplace(parameters.count(), options_.top_k);
  if (options_.trace == nullptr) return;
  base::Tracer& tracer = options_.trace->tracer();
  operations_ = &tracer.track(fmt::format("communication ({})", options_.trace->name()));
  bucket_label_ = tracer.label({"all-reduce", "exchange", {}, "bucket"});
  arrow_label_ = tracer.label({"all-reduce", "exchange"});
  machine_ = base::machine_number();
}

AllReduceExchange::~AllReduceExchange() {
  if (group_.collective && !parted_) group_.collective->abort("this member left");
}

void AllReduceExchange::begin(const exchange::StepStart& start) {
  start_ = start;
  in_step_ = true;
  posted_ = 0;
  buckets_.begin();
  traced_ = options_.trace != nullptr && start.traced;
  const auto nominal = static_cast<float>(options_.batch * options_.accumulate);
  const bool by_examples = options_.mean && options_.mean_loss;
  weight_ = by_examples ? static_cast<float>(start.examples) / nominal : 1.0F;
}

void AllReduceExchange::ready(graph::ParameterRange range, exchange::Event /*event*/) {
  const size_t complete = posted_ + buckets_.announced(range);
  while (posted_ < complete && posted_ + 1 < buckets_.size()) post_bucket(posted_);
}

void AllReduceExchange::post_bucket(size_t index) {
  ++posted_;
  if (!traced_) {
    communicator_.post([this, index] { return reduce(buckets_.range(index)); });
    return;
  }
  communicator_.post([this, index] {
    const Clock::time_point before = Clock::now();
    base::Result<bool> done = reduce(buckets_.range(index));
    operations_->span(bucket_label_, before, Clock::now(), index);
    return done;
  });
}

base::Result<bool> AllReduceExchange::reduce(graph::ParameterRange range) {
  const std::span<float> values = parameters_.gradients().subspan(range.offset, range.count);
  scale_gradients(range);
  if (top_k_) return reduce_sparse(range.offset, values);
  if (options_.wire != collective::Element::float32) return reduce_halves(values);
  return group_.collective->all_reduce(values);
}

base::Result<bool> AllReduceExchange::reduce_halves(std::span<float> values) {
  const transport::Element element = wire_element(options_.wire);
  const std::span<uint16_t> halves = std::span(halves_).first(values.size());
  transport::pack(element, values, std::as_writable_bytes(halves));
  base::Result<bool> done = group_.collective->all_reduce(halves.data(), halves.size(), options_.wire);
  if (done) transport::unpack(element, std::as_bytes(halves), values);
  return done;
}

base::Result<bool> AllReduceExchange::reduce_sparse(size_t offset, std::span<float> values) {
  const size_t kept = top_k_->kept(values.size());
  const std::span<SparseElement> mine = std::span(sparse_).first(kept);
  const std::span<SparseElement> all =
      std::span(everyones_).first(kept * static_cast<size_t>(group_.collective->size()));
  top_k_->select(offset, values, mine);
  base::Result<bool> done = group_.collective->all_gather(std::as_bytes(mine), std::as_writable_bytes(all));
  if (done) add_up(all, values);
  return done;
}

void AllReduceExchange::scale_gradients(graph::ParameterRange range) {
  if (weight_ == 1.0F) return;
  const std::span<float> values = parameters_.gradients().subspan(range.offset, range.count);
  for (float& value : values) value *= weight_;
}

/// The last bucket travels with the notes; where gradients are sent in another form, after it.
base::Result<bool> AllReduceExchange::reduce_last() {
  const graph::ParameterRange range = buckets_.range(buckets_.size() - 1);
  const size_t notes = notes_size(group_.collective->size());
  if (!plain()) {
    base::Result<bool> done = reduce(range);
    return done ? group_.collective->all_reduce(std::span(last_).first(notes)) : done;
  }
  const std::span<float> values = parameters_.gradients().subspan(range.offset, range.count);
  scale_gradients(range);
  std::copy(values.begin(), values.end(), last_.begin() + static_cast<ptrdiff_t>(notes));
  base::Result<bool> done = group_.collective->all_reduce(std::span(last_).first(notes + range.count));
  if (done) std::copy_n(last_.begin() + static_cast<ptrdiff_t>(notes), range.count, values.begin());
  return done;
}

base::Result<bool> AllReduceExchange::complete(const Note& note) {
  if (note.report.examples == 0) {
    // Nothing of this member: what is not under way yet counts nothing.
    for (size_t i = posted_; i < buckets_.size(); ++i) {
      const graph::ParameterRange range = buckets_.range(i);
      std::fill_n(parameters_.gradients().begin() + static_cast<ptrdiff_t>(range.offset), range.count, 0.0F);
    }
  }
  while (posted_ + 1 < buckets_.size()) post_bucket(posted_);
  const int members = group_.collective->size();
  write_note(note, group_.collective->rank(), std::span(last_).first(notes_size(members)));
  base::Result<bool> done = communicator_.run([this] { return reduce_last(); });
  in_step_ = false;
  if (done) read_notes(std::span(last_).first(notes_size(members)), members, notes_);
  return done;
}

base::Result<StepInfo> AllReduceExchange::finish(const BatchReport& report) {
  const Clock::time_point entered = Clock::now();
  Note note;
  note.report = report;
  note.regroup = leads_ && membership_->wants_regroup();
  if (leads_) note.stop = membership_->evaluators_word();
  note.times = times_;
  note.times.load = static_cast<float>(start_.load_seconds);
  const double since = seconds_between(left_finish_, entered);
  note.times.came = static_cast<float>(since);
  if (options_.trace != nullptr && !options_.one_process) {
    note.times.entered = options_.trace->tracer().since_epoch(entered);
    note.times.left = exchanged_;
    note.times.machine = machine_;
  }
  note.times.compute = static_cast<float>(std::max(since - start_.load_seconds - start_.aside_seconds, 0.0));
  base::Result<bool> done = complete(note);
  const Clock::time_point exchanged = Clock::now();
  times_.wait = static_cast<float>(seconds_between(entered, exchanged));
  times_.transfer = static_cast<float>(communicator_.take_seconds());
  StepInfo info;
  if (!done) {
    options_.log("warning", fmt::format("step {} is made again: {}", step_ + 1, with_names(done.failure().message)));
    base::Result<StepInfo> next = regroup();
    if (!next) return base::Failure(next.failure()).because(with_names(done.failure().message));
    info = std::move(next.value());
    info.applied = false;
    info.spent.others = seconds_between(entered, Clock::now());
  } else if (notes_.stop != train::StopReason::none) {
    agreed_ = notes_.stop;
    info.step = step_;
    info.examples_total = examples_;
    info.applied = false;
    info.stop = agreed_;
    info.spent.others = seconds_between(entered, exchanged);
    info.stopped_by = options_.names[static_cast<size_t>(group_.members[static_cast<size_t>(notes_.stopped_by)])];
  } else {
    apply(info);
    const Clock::time_point applied = Clock::now();
    const double waited = seconds_between(entered, exchanged);
    info.spent.others = waited_for_others(waited);
    info.spent.transfer = waited - info.spent.others;
    info.spent.optimizer = seconds_between(exchanged, applied);
    if (options_.trace != nullptr) trace_step(entered, exchanged);
    account();
    if (autotune_) tune();
    if (notes_.regroup) {
      base::Result<StepInfo> next = regroup();
      if (!next) return next;
      info.spent.others += seconds_between(applied, Clock::now());
      info.step = next.value().step;  // another part of the group may have been ahead
      info.examples_total = next.value().examples_total;
      info.plan = std::move(next.value().plan);
      info.batches_per_step = next.value().batches_per_step;
      info.stop = next.value().stop;
    }
  }
  left_finish_ = Clock::now();
  info.entered = entered;
  info.wait_seconds = seconds_between(entered, left_finish_);
  return info;
}

/// What the notes say of the first rank's clock.
void AllReduceExchange::estimate_clock(Clock::time_point exchanged) {
  const StepTimes& first = notes_.times.front();
  if (group_.collective->rank() == 0 || first.entered == 0) return;
  base::Tracer& tracer = options_.trace->tracer();
  clock_.came(first.entered, tracer.since_epoch(exchanged));
  if (exchanged_ != 0) {
    clock_.sent(entered_, first.left);
    clock_.saw(exchanged_, first.left);
  }
  if (!traced_) return;
  const auto offset = clock_.nanoseconds(machine_ != 0 && machine_ == first.machine);
  if (offset) tracer.set_offset(options_.names[static_cast<size_t>(group_.members.front())], *offset);
}

/// An arrow from the last one who came to all others.
void AllReduceExchange::trace_step(Clock::time_point entered, Clock::time_point exchanged) {
  base::Tracer& tracer = options_.trace->tracer();
  estimate_clock(exchanged);
  entered_ = tracer.since_epoch(entered);
  exchanged_ = tracer.since_epoch(exchanged);
  if (!traced_) return;
  const int rank = group_.collective->rank();
  const auto later = [](const StepTimes& a, const StepTimes& b) { return a.came < b.came; };
  const auto last =
      static_cast<int>(std::max_element(notes_.times.begin(), notes_.times.end(), later) - notes_.times.begin());
  const auto arrow = [&](int to) { return base::flow_number({group_.number, step_, static_cast<uint64_t>(to)}); };
  // An end belongs to the span around it: within the wait, not where that meets what was before and comes after.
  const Clock::duration inside = std::min<Clock::duration>(base::kInsideSpan, (exchanged - entered) / 2);
  for (int to = 0; to < group_.collective->size() && rank == last; ++to) {
    if (to != last) options_.trace->flow_begin(arrow_label_, arrow(to), entered + inside);
  }
  if (rank != last) options_.trace->flow_end(arrow_label_, arrow(rank), exchanged - inside);
}

double AllReduceExchange::waited_for_others(double waited) const {
  const auto mine = static_cast<size_t>(group_.collective->rank());
  float last = 0;
  for (const StepTimes& times : notes_.times) last = std::max(last, times.came);
  const double later = static_cast<double>(last) - static_cast<double>(notes_.times[mine].came);
  return later > 0 ? std::min(later, waited) : 0;
}

/// Engines know ranks; people know roles.
std::string AllReduceExchange::with_names(const std::string& text) const {
  static constexpr std::string_view kWord = "rank ";
  std::string named;
  for (size_t at = 0; at < text.size();) {
    const size_t found = text.find(kWord, at);
    named.append(text, at, found - at);
    if (found == std::string::npos) break;
    size_t rank = 0;
    const char* const digits = text.data() + found + kWord.size();
    const auto [end, error] = std::from_chars(digits, text.data() + text.size(), rank);
    const bool known = error == std::errc() && rank < group_.members.size();
    if (known) {
      named += options_.names[static_cast<size_t>(group_.members[rank])];
      at = static_cast<size_t>(end - text.data());
    } else {
      named += kWord;
      at = found + kWord.size();
    }
  }
  return named;
}

void AllReduceExchange::apply(StepInfo& info) {
  const bool by_examples = options_.mean && options_.mean_loss;
  const auto nominal = static_cast<float>(options_.batch * options_.accumulate);
  optim::Update update{step_, optim::learning_rate(options_.rules.schedule, step_), 1};
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
  live_ = true;
  ++step_;
  rounds_ += start_.batches;
  examples_ += notes_.report.examples;
  info.step = step_;
  info.learning_rate = update.learning_rate;
  info.group = notes_.report;
  info.examples_total = examples_;
}

void AllReduceExchange::account() {
  communication_.transfer_seconds += static_cast<double>(times_.transfer);
  communication_.wait_seconds += static_cast<double>(times_.wait);
  ++communication_.steps;
  const uint64_t sent = group_.collective->traffic().sent;
  communication_.bytes_sent += sent - bytes_counted_;
  bytes_counted_ = sent;
  paces_.resize(notes_.times.size());
  for (size_t rank = 0; rank < notes_.times.size(); ++rank) {
    const StepTimes& times = notes_.times[rank];
    paces_[rank] = {static_cast<double>(times.load), static_cast<double>(times.compute),
                    static_cast<double>(times.wait)};
    MemberRecord& record = records_[static_cast<size_t>(group_.members[rank])];
    ++record.steps;
    record.batches += static_cast<uint64_t>(start_.batches);
    record.examples += static_cast<uint64_t>(times.examples);
    record.load_seconds += static_cast<double>(times.load);
    record.compute_seconds += static_cast<double>(times.compute);
    record.wait_seconds += static_cast<double>(times.wait);
    record.transfer_seconds += static_cast<double>(times.transfer);
  }
  for (const StragglerEvent& event : stragglers_.step(step_, seconds_between(made_, Clock::now()), paces_)) {
    if (leads_) options_.log(event.over ? "info" : "warning", event.text);
  }
}

/// By what all members have been told, so that they decide alike.
void AllReduceExchange::tune() {
  const StepTimes& first = notes_.times.front();
  autotune_->step(static_cast<double>(first.load + first.compute + first.wait));
  if (autotune_->bucket_bytes() != options_.bucket_bytes) stragglers_.restart(group_.members);
  set_buckets(autotune_->bucket_bytes());
  if (!autotune_->done()) return;
  autotune_.reset();
  tuned_ = true;
  if (leads_ && options_.events != nullptr) options_.events->bucket_size_found(options_.bucket_bytes);
}

void AllReduceExchange::set_buckets(size_t bytes) {
  if (bytes != options_.bucket_bytes) buckets_ = Buckets(parameters_.count(), bytes);
  options_.bucket_bytes = bytes;
  const int members = group_.collective->size();
  last_.resize(notes_size(members) + buckets_.range(buckets_.size() - 1).count);
  if (plain()) return;
  size_t largest = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) largest = std::max(largest, buckets_.range(i).count);
  if (top_k_) {
    sparse_.resize(top_k_->kept(largest));
    everyones_.resize(sparse_.size() * static_cast<size_t>(members));
  } else {
    halves_.resize(largest);
  }
}

Communication AllReduceExchange::communication() const {
  Communication communication = communication_;
  communication.bucket_bytes = options_.bucket_bytes;
  communication.buckets = buckets_.size();
  return communication;
}

}  // namespace lockstep::allreduce
