#include "ps/ps_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "lockstep/error.h"
#include "optim/update_kernels.h"

namespace lockstep::ps {
namespace {

using exchange::BatchReport;
using exchange::StepInfo;

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr std::chrono::seconds kLetGo{10};  ///< for the transport to let go of the gradients of a broken connection

uint64_t random_number() {
  std::random_device device;
  return (uint64_t{device()} << 32U) | device();
}

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

base::Failure unexpected(const Link& link, const transport::Frame& frame) {
  const std::string said =
      kind_of(frame) == Kind::refuse ? frame.text() : fmt::format("a frame of kind {}", frame.header.kind);
  return {fmt::format("{} at {} answered with {}", link.name(), link.address(), said)};
}

}  // namespace

/// One server and its part of the parameters.
struct PsExchange::ServerPart {
  std::unique_ptr<Link> link;
  std::vector<graph::ParameterRange> ranges;
  size_t count = 0;
  uint64_t version = 0;          ///< of the parameters that came last
  uint64_t pushed_on = 0;        ///< the connection that the push under way went to; 0: it is broken
  bool sent = false;             ///< all of it
  std::vector<float> scattered;  ///< parameters on their way to several ranges
};

PsExchange::PsExchange(graph::ParameterStore& parameters, PsOptions options)
    : parameters_(parameters),
      options_(std::move(options)),
      member_(options_.spec.member_index(options_.task)),
      incarnation_(random_number()),
      left_finish_(Clock::now()) {
  const auto servers = static_cast<int>(options_.spec.ps.size());
  const auto places = place(parameters.infos(), servers, options_.placement);
  for (int i = 0; i < servers; ++i) {
    auto part = std::make_unique<ServerPart>();
    part->ranges = places[static_cast<size_t>(i)];
    for (const graph::ParameterRange& range : part->ranges) part->count += range.count;
    if (part->ranges.size() != 1) part->scattered.resize(part->count);
    LinkOptions link;
    const cluster::Task server{cluster::Role::ps, i};
    link.server = server.str();
    link.address = options_.spec.address(server);
    link.hello.set_protocol(kProtocol);
    link.hello.set_role(options_.task.str());
    link.hello.set_member(member_);
    link.hello.set_incarnation(incarnation_);
    link.hello.set_job(options_.job);
    link.security = options_.security;
    link.patience = options_.patience;
    link.spin = options_.spin;
    link.log = options_.log;
    link.interrupt = options_.interrupt;
    if (i > 0 && options_.coordination.sync) {
      link.on_lost = [this, name = server.str()] {
        if (waits_for_all_) parts_.front()->link->lose(name + " is gone");
      };
    }
    part->link = std::make_unique<Link>(std::move(link));
    parts_.push_back(std::move(part));
  }
}

PsExchange::~PsExchange() {
  while (parts_.size() > 1) parts_.pop_back();  // their threads may speak to the first one's link
}

// Taking part.

base::Result<bool> PsExchange::connect_all(const std::string& awaited) {
  for (const auto& part : parts_) {
    base::Result<transport::Stream*> stream = part->link->stream(awaited);
    if (!stream) return stream.failure();
  }
  run_ = parts_.front()->link->welcome().run();
  return true;
}

base::Result<bool> PsExchange::initialise_if_needed() {
  // All of one generation: a chief may have died after it had set only some of them anew.
  const uint64_t current = parts_.front()->link->welcome().generation();
  const bool all = std::all_of(parts_.begin(), parts_.end(), [&](const auto& part) {
    return part->link->welcome().initialised() && part->link->welcome().generation() == current;
  });
  if (all || !chief()) return true;
  uint64_t generation = 0;
  uint64_t lost = 0;
  for (const auto& part : parts_) {
    generation = std::max(generation, part->link->welcome().generation());
    lost = std::max(lost, part->link->welcome().version());
  }
  const Initial initial = options_.initial();
  lost = std::max(lost, parts_.front()->version);
  if (lost > initial.version) {
    options_.log("warning", fmt::format("a parameter server lost its state: all go back to step {}, {} steps are lost",
                                        initial.version, lost - initial.version));
  }
  // The coordinator last: once it has its parameters, everyone has.
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
    base::Result<bool> sent = send_initial(**part, initial, generation + 1);
    if (!sent) {
      (*part)->link->drop(sent.failure().message);
      return sent;
    }
  }
  for (const auto& part : parts_) part->link->drop("the parameters were set anew");
  return connect_all("its welcome");
}

base::Result<bool> PsExchange::send_initial(ServerPart& part, const Initial& initial, uint64_t generation) {
  base::Result<transport::Stream*> found = part.link->stream("its first parameters");
  if (!found) return found.failure();
  transport::Stream& stream = *found.value();
  wire::JobConfig job;
  to_wire(options_.coordination, job);
  to_wire(options_.rules, *job.mutable_optimizer());
  job.set_lock_free(options_.lock_free);
  job.set_patience(options_.patience);
  job.set_parameters(parameters_.count());
  job.set_generation(generation);
  job.set_job(options_.job);
  job.set_wire(static_cast<uint32_t>(options_.wire));
  for (const graph::ParameterRange& range : part.ranges) {
    wire::Range& added = *job.add_ranges();
    added.set_offset(range.offset);
    added.set_count(range.count);
  }
  base::Result<bool> sent = send(stream, header(Kind::init_begin), job);
  std::vector<std::span<const float>> arrays{initial.parameters};
  arrays.insert(arrays.end(), initial.slots.begin(), initial.slots.end());
  const auto hold = std::make_shared<int>(0);
  for (size_t i = 0; i < arrays.size(); ++i) {
    size_t local = 0;
    for (const graph::ParameterRange& range : part.ranges) {
      if (!sent) return sent;
      transport::Header elements = header(Kind::init);
      elements.offset = local;
      elements.extra = i;
      sent = send_elements(stream, elements, arrays[i].subspan(range.offset, range.count), Element::kFloat32, hold,
                           nullptr);
      local += range.count;
    }
  }
  if (!sent) return sent;
  wire::Ledger ledger;
  to_wire(initial.data, *ledger.mutable_plan());
  ledger.set_examples(initial.examples);
  transport::Header last = header(Kind::init_end);
  last.version = initial.version;
  sent = send(stream, last, ledger);
  if (!sent) return sent;
  base::Result<transport::Frame> answer = stream.read();
  if (!answer) return answer.failure();
  if (kind_of(answer.value()) != Kind::ok) return unexpected(*part.link, answer.value());
  return true;
}

base::Result<std::optional<StepInfo>> PsExchange::join() {
  for (;;) {
    base::Result<StepInfo> joined = try_to_join();
    if (joined) return std::optional<StepInfo>(joined.value());
    if (interrupted()) return base::Failure{"interrupted"};
    if (parts_.front()->link->ended()) {
      // It came when all was over: there is nothing left for it.
      StepInfo over;
      over.step = parts_.front()->version;
      over.stop = train::StopReason::data;
      return std::optional<StepInfo>(over);
    }
    if (given_up_) return joined.failure();
  }
}

base::Result<StepInfo> PsExchange::try_to_join() {
  base::Result<bool> connected = connect_all("its welcome");
  if (!connected) {
    given_up_ = true;
    return connected.failure();
  }
  base::Result<bool> fine = initialise_if_needed();
  if (!fine) return fine.failure();
  ServerPart& coordinator = *parts_.front();
  base::Result<transport::Stream*> stream = coordinator.link->stream("its parameters");
  if (!stream) return stream.failure();
  base::Result<bool> asked = stream.value()->write(header(Kind::join));
  base::Result<wire::Reply> reply = asked ? read_parameters(coordinator) : asked.failure();
  if (!reply) {
    coordinator.link->drop(reply.failure().message);
    return reply.failure();
  }
  for (size_t i = 1; i < parts_.size(); ++i) {
    fine = pull(*parts_[i], options_.coordination.sync ? coordinator.version : 0);
    if (!fine) return fine.failure();
  }
  if (options_.coordination.sync) fine = level();
  if (!fine) return fine.failure();
  rounds_ = 0;
  left_finish_ = Clock::now();
  return info_from(reply.value());
}

base::Result<bool> PsExchange::pull(ServerPart& part, uint64_t version) {
  base::Result<transport::Stream*> stream = part.link->stream("its parameters");
  if (!stream) return stream.failure();
  transport::Header ask = header(Kind::pull);
  ask.version = version;
  base::Result<bool> asked = stream.value()->write(ask);
  base::Result<wire::Reply> reply = asked ? read_parameters(part) : asked.failure();
  if (reply) return true;
  part.link->drop(reply.failure().message);
  return reply.failure();
}

base::Result<bool> PsExchange::level() {
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    uint64_t newest = 0;
    for (const auto& part : parts_) newest = std::max(newest, part->version);
    ServerPart* behind = nullptr;
    for (const auto& part : parts_) {
      if (part->version < newest) behind = part.get();
    }
    if (behind == nullptr) return true;
    base::Result<bool> pulled = pull(*behind, newest);
    if (!pulled) return pulled;
  }
  return base::Failure{"the servers never were at one version"};
}

base::Result<wire::Reply> PsExchange::read_parameters(ServerPart& part) {
  base::Result<transport::Stream*> stream = part.link->current();
  if (!stream) return stream.failure();
  const bool direct = part.ranges.size() == 1;
  const std::span<float> to = direct
                                  ? parameters_.values().subspan(part.ranges.front().offset, part.ranges.front().count)
                                  : std::span<float>(part.scattered);
  size_t taken = 0;
  for (;;) {
    base::Result<transport::Frame> frame = stream.value()->read();
    if (!frame) return frame.failure();
    if (kind_of(frame.value()) != Kind::parameters) return unexpected(*part.link, frame.value());
    taken += take_elements(frame.value(), to);
    if ((frame.value().header.flags & kLast) == 0) continue;
    if (taken != part.count) return base::Failure{fmt::format("{} of {} parameters came", taken, part.count)};
    part.version = frame.value().header.version;
    size_t local = 0;
    for (const graph::ParameterRange& range : part.ranges) {
      if (direct) break;
      std::copy_n(part.scattered.begin() + static_cast<ptrdiff_t>(local), range.count,
                  parameters_.values().begin() + static_cast<ptrdiff_t>(range.offset));
      local += range.count;
    }
    return parse<wire::Reply>(frame.value());
  }
}

StepInfo PsExchange::info_from(const wire::Reply& reply) {
  StepInfo info;
  info.step = parts_.front()->version;
  info.learning_rate = reply.learning_rate();
  info.gradient_norm = reply.gradient_norm();
  info.applied = reply.applied();
  info.stop = static_cast<train::StopReason>(std::min(reply.stop(), static_cast<uint32_t>(train::StopReason::error)));
  info.group = {reply.loss_sum(), reply.correct(), reply.examples()};
  info.examples_total = reply.examples_total();
  info.staleness = reply.staleness();
  if (reply.has_plan()) {
    info.plan = from_wire(reply.plan());
    info.batches_per_step = std::max<int64_t>(reply.plan().batches_per_update(), 1);
    plan_ = info.plan->id;
    rounds_ = 0;
  }
  return info;
}

// A step.

void PsExchange::begin(const exchange::StepStart& start) {
  start_ = start;
  rounds_ += start.batches;
  ++sequence_;
  bucket_ = {};
  // After a broken connection the transport may still hold the gradients of the push before.
  const Clock::time_point patience = Clock::now() + kLetGo;
  while (hold_.use_count() > 1) {
    if (Clock::now() > patience) throw Error("the transport does not let go of a broken connection's memory");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!hold_) hold_ = std::make_shared<int>(0);
  for (const auto& part : parts_) part->pushed_on = part->link->connections();
}

void PsExchange::ready(graph::ParameterRange range, exchange::Event /*event*/) {
  if (bucket_.count == 0) {
    bucket_ = range;
  } else if (range.offset + range.count == bucket_.offset) {
    bucket_ = {range.offset, range.count + bucket_.count};
  } else if (bucket_.offset + bucket_.count == range.offset) {
    bucket_.count += range.count;
  } else {
    push_bucket();
    bucket_ = range;
  }
  if (bucket_.count * sizeof(float) >= options_.bucket_bytes) push_bucket();
}

void PsExchange::push_bucket() {
  for (const auto& part : parts_) {
    if (part->pushed_on == 0 || part->pushed_on != part->link->connections()) continue;
    base::Result<transport::Stream*> stream = part->link->stream("its connection");
    const bool sent =
        stream && part->pushed_on == part->link->connections() && push(*part, *stream.value(), bucket_, false);
    if (!sent) part->pushed_on = 0;  // complete() sends all of it again
  }
  bucket_ = {};
}

base::Result<bool> PsExchange::push(ServerPart& part, transport::Stream& stream, graph::ParameterRange range,
                                    bool last) {
  wire::PushEnd end;
  end.set_plan(plan_);
  end.set_rounds(rounds_);
  end.set_examples(report_.examples);
  end.set_loss_sum(report_.loss_sum);
  end.set_correct(report_.correct);
  end.set_gradient_scale(gradient_scale_);
  end.set_wait_seconds(last_wait_);
  end.set_busy_seconds(last_busy_);
  transport::Header elements = header(Kind::push);
  elements.sequence = sequence_;
  elements.version = part.version;
  const std::vector<Slice> slices = intersect(part.ranges, range);
  for (size_t i = 0; i < slices.size(); ++i) {
    elements.offset = slices[i].local;
    const std::span<const float> values =
        parameters_.gradients().subspan(slices[i].global.offset, slices[i].global.count);
    const bool ends = last && i + 1 == slices.size();
    base::Result<bool> sent = send_elements(stream, elements, values, options_.wire, hold_, ends ? &end : nullptr);
    if (!sent) return sent;
  }
  if (!last || !slices.empty()) return true;
  elements.offset = 0;
  return send_elements(stream, elements, {}, options_.wire, hold_, &end);
}

base::Result<bool> PsExchange::push_rest(ServerPart& part) {
  base::Result<transport::Stream*> stream = part.link->stream(fmt::format("its answer to push {}", sequence_));
  if (!stream) {
    given_up_ = true;
    return stream.failure();
  }
  const bool nothing = report_.examples == 0;
  if (part.pushed_on != 0 && part.pushed_on == part.link->connections()) {
    return push(part, *stream.value(), nothing ? graph::ParameterRange{} : bucket_, true);
  }
  part.pushed_on = part.link->connections();
  return push(part, *stream.value(), {0, nothing ? 0 : parameters_.count()}, true);
}

base::Result<bool> PsExchange::push_to_others() {
  waits_for_all_ = options_.coordination.sync;
  for (size_t i = 1; i < parts_.size(); ++i) {
    ServerPart& part = *parts_[i];
    while (waits_for_all_ && !(part.sent && part.link->intact() && part.pushed_on == part.link->connections())) {
      part.sent = push_rest(part).ok();
      if (given_up_ || interrupted()) return base::Failure{part.link->name() + " is gone"};
    }
  }
  return true;
}

base::Result<wire::Reply> PsExchange::complete(ServerPart& part) {
  const bool first = &part == parts_.front().get();
  bool sent_here = part.pushed_on == part.link->connections() && part.pushed_on != 0 && part.sent;
  for (;;) {
    base::Result<bool> pushed = sent_here ? base::Result<bool>(true) : push_rest(part);
    if (pushed && first) pushed = push_to_others();
    base::Result<wire::Reply> reply = pushed ? read_parameters(part) : pushed.failure();
    if (first) waits_for_all_ = false;
    if (reply) return reply;
    sent_here = false;
    part.pushed_on = 0;
    if (interrupted() || given_up_) return reply;
    part.link->drop(reply.failure().message);
    if (chief()) {
      // A server that lost its state needs new parameters from here; then everyone joins anew.
      base::Result<transport::Stream*> back = part.link->stream(fmt::format("its answer to push {}", sequence_));
      if (back && !part.link->welcome().initialised()) {
        wire::Reply anew;
        anew.set_rejoin(true);
        return anew;
      }
    }
  }
}

base::Result<StepInfo> PsExchange::finish(const BatchReport& report) {
  const Clock::time_point entered = Clock::now();
  report_ = report;
  gradient_scale_ = 1;
  gradient_norm_ = kNone;
  if (report.examples == 0 && !options_.coordination.sync) {
    // Nothing to say: the round is counted with the next push.
    StepInfo same;
    same.step = parts_.front()->version;
    return same;
  }
  if (!options_.coordination.sync && options_.rules.clip_norm > 0) clip();
  for (const auto& part : parts_) part->sent = push_rest(*part).ok();
  base::Result<wire::Reply> reply = complete(*parts_.front());
  if (!reply) return reply.failure();
  const bool anew = reply.value().rejoin() && reply.value().stop() == 0;
  if (anew && !reply.value().applied()) return rejoin(reply.value());
  const bool stopped = reply.value().stop() != 0 && !reply.value().applied();
  for (size_t i = 1; i < parts_.size(); ++i) {
    if (stopped && options_.coordination.sync) {
      // The version that the others' answers would wait for will not be made.
      parts_[i]->link->drop("training stops");
      continue;
    }
    base::Result<wire::Reply> other = complete(*parts_[i]);
    if (!other) return other.failure();
    if (other.value().rejoin()) return rejoin({});  // it lost its state: all go back
  }
  if (anew) return rejoin(reply.value());
  if (options_.coordination.sync && parts_.size() > 1) {
    base::Result<bool> levelled = level();
    if (!levelled) return levelled.failure();
  }
  StepInfo info = info_from(reply.value());
  if (!std::isnan(gradient_norm_)) info.gradient_norm = gradient_norm_;
  rounds_ = info.applied || info.plan ? 0 : rounds_ - start_.batches;
  const Clock::time_point left = Clock::now();
  last_wait_ = seconds_between(entered, left);
  last_busy_ = seconds_between(left_finish_, entered);
  wait_seconds_ += last_wait_;
  busy_seconds_ += last_busy_;
  info.wait_seconds = last_wait_;
  left_finish_ = left;
  return info;
}

base::Result<StepInfo> PsExchange::rejoin(const wire::Reply& reply) {
  for (const auto& part : parts_) part->link->drop("joining anew");
  base::Result<std::optional<StepInfo>> joined = join();
  if (!joined) return joined.failure();
  StepInfo info = *joined.value();
  info.applied = reply.applied();
  if (info.applied) {
    info.group = {reply.loss_sum(), reply.correct(), reply.examples()};
    info.learning_rate = reply.learning_rate();
    info.gradient_norm = reply.gradient_norm();
    info.staleness = reply.staleness();
  }
  return info;
}

/// Asynchronous: each gradient is clipped by itself.
void PsExchange::clip() {
  constexpr double kTiny = 1e-6;
  const double norm = std::sqrt(optim::sum_of_squares(parameters_.gradients(), options_.threads));
  gradient_norm_ = static_cast<float>(norm);
  gradient_scale_ = static_cast<float>(std::min(1.0, static_cast<double>(options_.rules.clip_norm) / (norm + kTiny)));
}

// The end, and checkpoints.

base::Result<std::optional<StepInfo>> PsExchange::leave(const exchange::Farewell& farewell) {
  ServerPart& coordinator = *parts_.front();
  wire::Leave leave;
  leave.set_stop(static_cast<uint32_t>(farewell.reason));
  leave.set_loss(farewell.loss);
  leave.set_accuracy(farewell.accuracy);
  leave.set_rounds(rounds_);
  for (;;) {
    base::Result<transport::Stream*> stream = coordinator.link->stream("the end of all");
    if (!stream) {
      if (coordinator.link->ended()) return std::optional<StepInfo>();
      return stream.failure();
    }
    const auto attempt = [&]() -> base::Result<bool> {
      base::Result<bool> sent = send(*stream.value(), header(Kind::leave), leave);
      if (!sent) return sent;
      base::Result<transport::Frame> ok = stream.value()->read();
      if (!ok) return ok.failure();
      if (kind_of(ok.value()) != Kind::ok) return unexpected(*coordinator.link, ok.value());
      sent = stream.value()->write(header(Kind::wait_end));
      if (!sent) return sent;
      base::Result<transport::Frame> end = stream.value()->read();
      if (!end) return end.failure();
      if (kind_of(end.value()) != Kind::snapshot_end) return unexpected(*coordinator.link, end.value());
      take_records(parse<wire::Snapshot>(end.value()).ledger());
      return (end.value().header.flags & kLast) != 0;
    };
    const base::Result<bool> again = attempt();
    if (!again) {
      coordinator.link->drop(again.failure().message);
      if (chief() && coordinator.link->stream("the end of all") && !coordinator.link->welcome().initialised()) {
        return join();
      }
      continue;
    }
    if (again.value()) return join();
    rounds_ = 0;
    for (const auto& part : parts_) {
      base::Result<bool> pulled = pull(*part, 0);
      if (!pulled && !coordinator.link->ended()) return pulled.failure();
    }
    return std::optional<StepInfo>();
  }
}

void PsExchange::end() {
  base::Result<transport::Stream*> stream = parts_.front()->link->stream("the end");
  if (!stream) return;
  if (stream.value()->write(header(Kind::end))) static_cast<void>(stream.value()->read());
}

void PsExchange::take_records(const wire::Ledger& ledger) {
  records_.clear();
  for (const wire::MemberState& member : ledger.members()) records_.push_back(record_of(member));
  job_seconds_ = ledger.seconds();
}

std::vector<std::string> PsExchange::slot_names() const {
  const auto names = optim::slot_names(options_.rules.optimizer.method);
  return {names.begin(), names.end()};
}

base::Result<exchange::Snapshot> PsExchange::snapshot() {
  for (;;) {
    base::Result<exchange::Snapshot> taken = try_snapshot();
    if (taken || interrupted() || given_up_) return taken;
    const bool lost = std::any_of(parts_.begin(), parts_.end(),
                                  [](const auto& part) { return !part->link->welcome().initialised(); });
    if (lost) return taken;
  }
}

/// Keeps servers from changing until `release`, so that their parts fit together: in synchronous mode ps:0, without
/// whom no version is made, in asynchronous mode all of them. Gives the pushes that any of them has applied.
base::Result<wire::Ledger> PsExchange::hold() {
  wire::Ledger pushes;
  const size_t held = options_.coordination.sync ? 1 : parts_.size();
  for (size_t i = 0; i < held; ++i) {
    base::Result<wire::Snapshot> answer = ask_hold(*parts_[i]);
    if (!answer) return answer.failure();
    const wire::Ledger& applied = answer.value().ledger();
    for (int m = 0; m < applied.members_size() && !options_.coordination.sync; ++m) {
      while (pushes.members_size() <= m) pushes.add_members();
      wire::MemberState& newest = *pushes.mutable_members(m);
      const bool first = newest.incarnation() == 0;
      const bool newer =
          newest.incarnation() == applied.members(m).incarnation() && newest.applied() < applied.members(m).applied();
      if (first || newer) newest = applied.members(m);
    }
  }
  return pushes;
}

base::Result<wire::Snapshot> PsExchange::ask_hold(ServerPart& part) {
  base::Result<transport::Stream*> stream = part.link->stream("a snapshot");
  if (!stream) {
    given_up_ = true;
    return stream.failure();
  }
  base::Result<bool> asked = stream.value()->write(header(Kind::hold));
  base::Result<transport::Frame> answer = asked ? stream.value()->read() : asked.failure();
  if (answer && kind_of(answer.value()) == Kind::snapshot_end) return parse<wire::Snapshot>(answer.value());
  const base::Failure failure = answer ? unexpected(*part.link, answer.value()) : answer.failure();
  part.link->drop(failure.message);
  return failure;
}

void PsExchange::release() {
  for (const auto& part : parts_) {
    base::Result<transport::Stream*> stream = part->link->stream("a snapshot");
    if (stream) static_cast<void>(stream.value()->write(header(Kind::release)));
  }
}

base::Result<exchange::Snapshot> PsExchange::try_snapshot() {
  state_.resize(slot_names().size() + 1);
  for (std::vector<float>& array : state_) array.resize(parameters_.count());
  const bool several = parts_.size() > 1;
  base::Result<wire::Ledger> pushes = several ? hold() : base::Result<wire::Ledger>(wire::Ledger());
  if (!pushes) return pushes.failure();
  wire::Snapshot first;
  for (const auto& part : parts_) {
    base::Result<transport::Stream*> stream = part->link->stream("a snapshot");
    if (!stream) {
      given_up_ = true;
      return stream.failure();
    }
    transport::Header ask = header(Kind::snapshot);
    ask.version = options_.coordination.sync ? first.version() : 0;
    wire::Snapshot end;
    base::Result<bool> sent = send(*stream.value(), ask, pushes.value());
    base::Result<bool> came = sent ? read_state(*part, *stream.value(), end) : sent;
    if (!came) {
      part->link->drop(came.failure().message);
      return came.failure();
    }
    if (part == parts_.front()) first = end;
  }
  if (several) release();
  std::copy(state_.front().begin(), state_.front().end(), parameters_.values().begin());
  take_records(first.ledger());
  exchange::Snapshot made;
  made.step = first.version();
  made.parameters = state_.front();
  const auto names = optim::slot_names(options_.rules.optimizer.method);
  for (size_t i = 1; i < state_.size(); ++i) made.slots.push_back({names[i - 1], state_[i]});
  made.group = exchange::Snapshot::Group{first.ledger().examples(), from_wire(first.remaining())};
  return made;
}

base::Result<bool> PsExchange::read_state(ServerPart& part, transport::Stream& stream, wire::Snapshot& end) {
  std::vector<std::vector<float>> shard(state_.size(), std::vector<float>(part.count));
  std::vector<size_t> taken(state_.size(), 0);
  for (;;) {
    base::Result<transport::Frame> frame = stream.read();
    if (!frame) return frame.failure();
    if (kind_of(frame.value()) == Kind::snapshot_end) {
      end = parse<wire::Snapshot>(frame.value());
      break;
    }
    if (kind_of(frame.value()) != Kind::state || frame.value().header.extra >= shard.size()) {
      return unexpected(*part.link, frame.value());
    }
    taken[frame.value().header.extra] += take_elements(frame.value(), shard[frame.value().header.extra]);
  }
  for (size_t i = 0; i < shard.size(); ++i) {
    if (taken[i] != part.count)
      return base::Failure{fmt::format("{} of {} elements of the state came", taken[i], part.count)};
    size_t local = 0;
    for (const graph::ParameterRange& range : part.ranges) {
      std::copy_n(shard[i].begin() + static_cast<ptrdiff_t>(local), range.count,
                  state_[i].begin() + static_cast<ptrdiff_t>(range.offset));
      local += range.count;
    }
  }
  part.version = end.version();
  return true;
}

}  // namespace lockstep::ps
