// How a worker joins: the first parameters, joining, pulling.
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"
#include "ps/server_part.h"

namespace lockstep::ps {

using exchange::StepInfo;

base::Status PsExchange::connect_all(const std::string& awaited) {
  for (const auto& part : parts_) {
    base::Result<transport::Stream*> stream = part->link->stream(awaited);
    if (!stream) return stream.failure();
  }
  run_ = parts_.front()->link->welcome().run();
  return {};
}

base::Status PsExchange::initialise_if_needed() {
  // All servers must have one generation: a chief may have died after it had set only some of them again.
  const uint64_t current = parts_.front()->link->welcome().generation();
  const bool all = std::all_of(parts_.begin(), parts_.end(), [&](const auto& part) {
    return part->link->welcome().initialised() && part->link->welcome().generation() == current;
  });
  if (all || !chief()) return {};
  uint64_t generation = generation_;
  for (const auto& part : parts_) generation = std::max(generation, part->link->welcome().generation());
  const Initial initial = options_.initial();
  if (generation > 0) {
    options_.log("warning",
                 fmt::format("a parameter server lost its state; all workers go back to step {}", initial.version));
  }
  // The coordinator comes last: once it has its parameters, all servers have theirs.
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
    base::Status sent = send_initial(**part, initial, generation + 1);
    if (!sent) {
      (*part)->link->drop(sent.failure().message());
      return sent;
    }
  }
  for (const auto& part : parts_) part->link->drop("the parameters were set again");
  return connect_all("its welcome");
}

base::Status PsExchange::send_initial(ServerPart& part, const Initial& initial, uint64_t generation) {
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
  job.set_protocol(kProtocol);
  job.set_wire(static_cast<uint32_t>(options_.wire));
  for (const program::ParameterRange& range : part.ranges) {
    wire::Range& added = *job.add_ranges();
    added.set_offset(range.offset);
    added.set_count(range.count);
  }
  base::Status sent = send(stream, header(Kind::init_begin), job);
  std::vector<std::span<const float>> arrays{initial.parameters};
  arrays.insert(arrays.end(), initial.slots.begin(), initial.slots.end());
  const auto hold = std::make_shared<int>(0);
  for (size_t i = 0; i < arrays.size(); ++i) {
    size_t local = 0;
    for (const program::ParameterRange& range : part.ranges) {
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
  return {};
}

base::Result<std::optional<StepInfo>> PsExchange::join() {
  for (;;) {
    base::Result<StepInfo> joined = try_to_join();
    if (joined) return std::optional<StepInfo>(joined.value());
    if (interrupted()) return base::Failure{base::FailureKind::interrupted, "interrupted"};
    if (ended()) return std::optional<StepInfo>(end_after_others());
    if (given_up_) return joined.failure();
    note(joined.failure());
  }
}

/// Logs a failure that is retried; once, and only if it is not an ordinary lost connection.
void PsExchange::note(const base::Failure& failure) {
  if (failure.kind != base::FailureKind::refused) return;
  std::string line = failure.message();
  if (line == noted_) return;
  noted_ = std::move(line);
  options_.log("warning", noted_ + "; trying again");
}

base::Result<StepInfo> PsExchange::try_to_join() {
  base::Status connected = connect_all("its welcome");
  if (!connected) {
    given_up_ = true;
    return connected.failure();
  }
  base::Status fine = initialise_if_needed();
  if (!fine) return fine.failure();
  ServerPart& coordinator = *parts_.front();
  base::Result<transport::Stream*> stream = coordinator.link->stream("its parameters");
  if (!stream) return stream.failure();
  transport::Header ask = header(Kind::join);
  ask.version = coordinator.version;  // the step reached here, in case all went back
  ask.extra = generation_;
  base::Status asked = stream.value()->write(ask);
  base::Result<wire::Reply> reply = asked ? read_parameters(coordinator) : asked.failure();
  if (!reply) {
    coordinator.link->drop(reply.failure().message());
    return reply.failure();
  }
  generation_ = reply.value().generation();
  for (size_t i = 1; i < parts_.size(); ++i) {
    fine = pull(*parts_[i], coordinator.version);
    if (!fine) return fine.failure();
  }
  if (options_.coordination.sync) fine = level();
  if (!fine) return fine.failure();
  rounds_ = 0;
  left_finish_ = Clock::now();
  return info_from(reply.value());
}

base::Status PsExchange::pull(ServerPart& part, uint64_t version) {
  base::Result<transport::Stream*> stream = part.link->stream("its parameters");
  if (!stream) return stream.failure();
  transport::Header ask = header(Kind::pull);
  ask.version = version;
  base::Status asked = stream.value()->write(ask);
  base::Result<wire::Reply> reply = asked ? read_parameters(part) : asked.failure();
  if (reply) return {};
  part.link->drop(reply.failure().message());
  return reply.failure();
}

base::Status PsExchange::level() {
  constexpr int kTries = 1000;
  for (int i = 0; i < kTries; ++i) {
    uint64_t newest = 0;
    for (const auto& part : parts_) newest = std::max(newest, part->version);
    ServerPart* behind = nullptr;
    for (const auto& part : parts_) {
      if (part->version < newest) behind = part.get();
    }
    if (behind == nullptr) return {};
    base::Status pulled = pull(*behind, newest);
    if (!pulled) return pulled;
  }
  return base::Failure{base::FailureKind::other, "the servers did not reach one common version"};
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
    if (taken != part.count) {
      return base::Failure{base::FailureKind::corrupt, fmt::format("received {} of {} parameters", taken, part.count)};
    }
    part.version = frame.value().header.version;
    size_t local = 0;
    for (const program::ParameterRange& range : part.ranges) {
      if (direct) break;
      std::copy_n(part.scattered.begin() + static_cast<ptrdiff_t>(local), range.count,
                  parameters_.values().begin() + static_cast<ptrdiff_t>(range.offset));
      local += range.count;
    }
    wire::Reply reply = parse<wire::Reply>(frame.value());
    check(reply);
    return reply;
  }
}

void PsExchange::set_outcome(StepInfo& info, const wire::Reply& reply) {
  using exchange::StepOutcome;
  info.outcome = reply.applied() ? StepOutcome::applied : info.stop ? StepOutcome::ended : StepOutcome::retry;
}

StepInfo PsExchange::info_from(const wire::Reply& reply) {
  StepInfo info;
  info.step = parts_.front()->version;
  info.learning_rate = reply.learning_rate();
  info.gradient_norm = reply.gradient_norm();
  if (reply.stop() != 0) info.stop = {stop_reason(reply.stop())};
  set_outcome(info, reply);
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

}  // namespace lockstep::ps
