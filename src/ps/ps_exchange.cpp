#include "ps/ps_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include "lockstep/error.h"
#include "optim/update_kernels.h"
#include "ps/server_part.h"

namespace lockstep::ps {
namespace {

using exchange::BatchReport;
using exchange::StepInfo;

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
/// patience for the transport to release the gradients of a broken connection
constexpr std::chrono::seconds kReleaseWait{10};

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

PsExchange::PsExchange(program::ParameterStore& parameters, PsOptions options)
    : parameters_(parameters),
      options_(std::move(options)),
      member_(options_.spec.member_index(options_.task)),
      incarnation_(wire::new_incarnation()),
      buckets_(options_.bucket_bytes),
      left_finish_(Clock::now()) {
  const auto servers = static_cast<int>(options_.spec.ps.size());
  const auto places = place(parameters.infos(), servers, options_.placement);
  for (int i = 0; i < servers; ++i) {
    auto part = std::make_unique<ServerPart>();
    part->index = i;
    part->ranges = places[static_cast<size_t>(i)];
    for (const program::ParameterRange& range : part->ranges) part->count += range.count;
    if (part->ranges.size() != 1) part->scattered.resize(part->count);
    ServerLinkOptions link;
    const cluster::Task server{cluster::Role::ps, i};
    link.server = server.str();
    link.address = options_.spec.address(server);
    link.hello.set_protocol(kProtocol);
    link.hello.set_role(options_.task.str());
    link.hello.set_member(member_);
    link.hello.set_incarnation(incarnation_);
    link.hello.set_job(options_.job);
    introduce(link.hello);
    link.security = options_.security;
    link.patience = options_.patience;
    link.spin = options_.spin;
    link.log = options_.log;
    link.interrupt = options_.interrupt;
    link.meter = options_.meter;
    link.look_for_ending = [this] { return look_for_ending(); };
    if (i > 0) {
      link.on_lost = [this, name = server.str()] {
        if (waits_for_all_) parts_.front()->link->lose(name + " is gone");
      };
    }
    part->link = std::make_unique<ServerLink>(std::move(link));
    parts_.push_back(std::move(part));
  }
  if (options_.trace != nullptr) {
    push_label_ = options_.trace->tracer().label({"push", "exchange"});
    pull_label_ = options_.trace->tracer().label({"pull", "exchange"});
  }
}

PsExchange::~PsExchange() {
  while (parts_.size() > 1) parts_.pop_back();  // threads of the other links may use the first one's link
}

void PsExchange::begin(const exchange::StepStart& start) {
  start_ = start;
  rounds_ += start.batches;
  ++sequence_;
  buckets_.begin();
  traced_ = options_.trace != nullptr && start.traced;
  // After a broken connection the transport may still hold the gradients of the previous push.
  const Clock::time_point patience = Clock::now() + kReleaseWait;
  while (hold_.use_count() > 1) {
    if (Clock::now() > patience) throw Error("the transport still holds the memory of a broken connection");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!hold_) hold_ = std::make_shared<int>(0);
  for (const auto& part : parts_) part->pushed_on = part->link->connections();
}

void PsExchange::ready(program::ParameterRange range, exchange::Event /*event*/) {
  buckets_.announced(range, [this](program::ParameterRange bucket) { push_bucket(bucket); });
}

void PsExchange::push_bucket(program::ParameterRange bucket) {
  const Clock::time_point before = Clock::now();
  for (const auto& part : parts_) {
    if (part->pushed_on == 0 || part->pushed_on != part->link->connections()) continue;
    base::Result<transport::Stream*> stream = part->link->stream("its connection");
    const bool sent =
        stream && part->pushed_on == part->link->connections() && push(*part, *stream.value(), bucket, false);
    if (!sent) part->pushed_on = 0;  // complete() sends the whole push again
  }
  const Clock::time_point now = Clock::now();
  spent_.early_push += seconds_between(before, now);
  if (traced_) options_.trace->span(push_label_, before, now);
}

base::Status PsExchange::push(ServerPart& part, transport::Stream& stream, program::ParameterRange range, bool last) {
  wire::PushEnd end;
  end.set_plan(plan_);
  end.set_rounds(rounds_);
  end.set_examples(report_.examples);
  end.set_loss_sum(report_.loss_sum);
  end.set_correct(report_.correct);
  end.set_gradient_scale(gradient_scale_);
  end.set_wait_seconds(last_wait_);
  end.set_busy_seconds(last_busy_);
  end.set_traced(traced_);
  transport::Header elements = header(Kind::push);
  elements.sequence = sequence_;
  elements.version = part.version;
  const std::vector<schedule::Slice> slices = intersect(part.ranges, range);
  for (size_t i = 0; i < slices.size(); ++i) {
    elements.offset = slices[i].local;
    const std::span<const float> values =
        parameters_.gradients().subspan(slices[i].global.offset, slices[i].global.count);
    const bool ends = last && i + 1 == slices.size();
    base::Status sent = send_elements(stream, elements, values, options_.wire, hold_, ends ? &end : nullptr);
    if (!sent) return sent;
  }
  if (!last || !slices.empty()) return {};
  elements.offset = 0;
  return send_elements(stream, elements, {}, options_.wire, hold_, &end);
}

base::Status PsExchange::push_rest(ServerPart& part) {
  base::Result<transport::Stream*> stream = part.link->stream(fmt::format("its answer to push {}", sequence_));
  if (!stream) {
    given_up_ = true;
    return stream.failure();
  }
  if (traced_) {
    part.began_last = Clock::now();
    options_.trace->flow_begin(push_label_, push_flow(member_, incarnation_, sequence_, part.index), part.began_last);
  }
  const bool nothing = report_.examples == 0;
  if (part.pushed_on != 0 && part.pushed_on == part.link->connections()) {
    return push(part, *stream.value(), nothing ? program::ParameterRange{} : buckets_.rest(), true);
  }
  part.pushed_on = part.link->connections();
  return push(part, *stream.value(), {0, nothing ? 0 : parameters_.count()}, true);
}

base::Status PsExchange::push_to_others() {
  waits_for_all_ = true;
  for (size_t i = 1; i < parts_.size(); ++i) {
    ServerPart& part = *parts_[i];
    while (waits_for_all_ && !(part.sent && part.link->intact() && part.pushed_on == part.link->connections())) {
      part.sent = push_rest(part).ok();
      if (given_up_ || interrupted()) return base::Failure{base::FailureKind::gone, "is gone", {part.link->name()}};
    }
  }
  return {};
}

base::Result<wire::Reply> PsExchange::complete(ServerPart& part) {
  const bool first = &part == parts_.front().get();
  bool sent_here = part.pushed_on == part.link->connections() && part.pushed_on != 0 && part.sent;
  for (;;) {
    base::Status pushed = sent_here ? base::Status() : push_rest(part);
    if (pushed && first) pushed = push_to_others();
    base::Result<wire::Reply> reply = pushed ? read_parameters(part) : pushed.failure();
    if (first) waits_for_all_ = false;
    if (reply) {
      // The other servers wait for ps:0, which knows the missing members.
      if (first) spent_.others = std::max(spent_.others, reply.value().waited_seconds());
      if (traced_) trace_answer(part, reply.value());
      return reply;
    }
    sent_here = false;
    part.pushed_on = 0;
    if (interrupted() || given_up_) return reply;
    note(reply.failure());
    part.link->drop(reply.failure().message());
    if (chief()) {
      // A server that lost its state needs the parameters from this worker; then all workers join again.
      base::Result<transport::Stream*> back = part.link->stream(fmt::format("its answer to push {}", sequence_));
      if (back && !part.link->welcome().initialised()) {
        wire::Reply anew;
        anew.set_rejoin(true);
        return anew;
      }
    }
  }
}

void PsExchange::trace_answer(ServerPart& part, const wire::Reply& reply) {
  if (reply.sent_at() == 0) return;  // the server writes no trace
  const Clock::time_point now = Clock::now();
  base::Tracer& tracer = options_.trace->tracer();
  options_.trace->flow_end(pull_label_, pull_flow(member_, incarnation_, sequence_, part.index), now);
  part.clock.sent(tracer.since_epoch(part.began_last), reply.received_at());
  part.clock.came(reply.sent_at(), tracer.since_epoch(now));
  if (const auto offset = part.clock.nanoseconds()) tracer.set_offset(part.link->name(), *offset);
}

base::Result<StepInfo> PsExchange::finish(const BatchReport& report) {
  const Clock::time_point entered = Clock::now();
  report_ = report;
  gradient_scale_ = 1;
  gradient_norm_ = kNone;
  if (report.examples == 0 && !options_.coordination.sync) {
    // No data in this round: it is counted with the next push.
    StepInfo same;
    same.step = parts_.front()->version;
    same.entered = entered;
    same.spent = std::exchange(spent_, {});
    return same;
  }
  Clock::time_point before = entered;
  if (!options_.coordination.sync && options_.rules.clip_norm > 0) {
    clip();
    before = Clock::now();
    spent_.optimizer = seconds_between(entered, before);
  }
  // ps:0 last: it counts the push as soon as it has it, if the others had it before.
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) (*part)->sent = push_rest(**part).ok();
  pushed_ = Clock::now();
  spent_.push = seconds_between(before, pushed_);
  rejoined_ = false;
  base::Result<StepInfo> answered = await_answers();
  if (!answered && !ended()) return answered;
  StepInfo info = answered ? std::move(answered.value()) : end_after_others();
  info.entered = entered;
  if (rejoined_) {
    spent_.others = seconds_between(pushed_, Clock::now());
    info.spent = std::exchange(spent_, {});
    return info;
  }
  rounds_ = info.applied() || info.plan ? 0 : rounds_ - start_.batches;
  const Clock::time_point left = Clock::now();
  last_wait_ = seconds_between(entered, left);
  last_busy_ = seconds_between(left_finish_, entered);
  wait_seconds_ += last_wait_;
  busy_seconds_ += last_busy_;
  info.wait_seconds = last_wait_;
  const double waited = seconds_between(pushed_, left);
  spent_.others = std::min(spent_.others, waited);
  spent_.pull = waited - spent_.others;
  info.spent = std::exchange(spent_, {});
  left_finish_ = left;
  return info;
}

base::Result<StepInfo> PsExchange::await_answers() {
  base::Result<wire::Reply> reply = complete(*parts_.front());
  if (!reply) return reply.failure();
  const bool anew = reply.value().rejoin() && reply.value().stop() == 0;
  if (anew && !reply.value().applied()) return rejoin(reply.value());
  const bool stopped = reply.value().stop() != 0 && !reply.value().applied();
  for (size_t i = 1; i < parts_.size(); ++i) {
    if (stopped) {
      // The version that the other answers wait for will not be made.
      parts_[i]->link->drop("training stops");
      continue;
    }
    base::Result<wire::Reply> other = complete(*parts_[i]);
    if (!other) return other.failure();
    if (other.value().rejoin()) return rejoin({});  // the server lost its state: all workers go back
  }
  if (anew) return rejoin(reply.value());
  if (options_.coordination.sync && parts_.size() > 1) {
    base::Status levelled = level();
    if (!levelled) return levelled.failure();
  }
  return info_from(reply.value());
}

bool PsExchange::ended() const {
  return std::any_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->link->ended(); });
}

/// Looks for signs of the end at ps:0, which knows first and stays longest.
std::optional<exchange::Ending> PsExchange::look_for_ending() const {
  const ServerLink& first = *parts_.front()->link;
  if (first.ended()) return exchange::Ending{first.why_ended(), 0};
  return options_.look_for_ending ? options_.look_for_ending() : std::nullopt;
}

StepInfo PsExchange::end_after_others() {
  over_ = rejoined_ = true;
  StepInfo info;
  info.step = parts_.front()->version;
  info.outcome = exchange::StepOutcome::missed;
  info.stop = {train::StopReason::data};
  for (const auto& part : parts_) {
    const train::StopReason why = part->link->why_ended();
    if (why == train::StopReason::interrupted || why == train::StopReason::not_finite) info.stop = {why};
  }
  options_.log("warning", "training is over: it ended without this worker");
  return info;
}

base::Result<StepInfo> PsExchange::rejoin(const wire::Reply& reply) {
  rejoined_ = true;
  for (const auto& part : parts_) part->link->drop("joining anew");
  base::Result<std::optional<StepInfo>> joined = join();
  if (!joined) return joined.failure();
  StepInfo info = *joined.value();
  if (reply.applied() || info.outcome != exchange::StepOutcome::missed) set_outcome(info, reply);
  if (info.applied()) {
    info.group = {reply.loss_sum(), reply.correct(), reply.examples()};
    info.learning_rate = reply.learning_rate();
    info.gradient_norm = reply.gradient_norm();
    info.staleness = reply.staleness();
  }
  return info;
}

/// Asynchronous: clips each gradient by itself.
void PsExchange::clip() {
  constexpr double kTiny = 1e-6;
  const double norm = std::sqrt(optim::sum_of_squares(parameters_.gradients(), options_.threads));
  gradient_norm_ = static_cast<float>(norm);
  gradient_scale_ = static_cast<float>(std::min(1.0, static_cast<double>(options_.rules.clip_norm) / (norm + kTiny)));
}

}  // namespace lockstep::ps
