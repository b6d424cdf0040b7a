// How a worker leaves, and how the chief gets the whole state for a checkpoint.
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"
#include "ps/server_part.h"

namespace lockstep::ps {

using exchange::StepInfo;

base::Result<std::optional<StepInfo>> PsExchange::leave(const exchange::Farewell& farewell) {
  if (over_) return std::optional<StepInfo>();
  ServerPart& coordinator = *parts_.front();
  wire::Leave leave;
  leave.set_stop(static_cast<uint32_t>(farewell.reason));
  leave.set_loss(farewell.loss);
  leave.set_accuracy(farewell.accuracy);
  leave.set_rounds(rounds_);
  for (;;) {
    base::Result<transport::Stream*> stream = coordinator.link->stream("the end of training");
    if (!stream) {
      if (ended()) return std::optional<StepInfo>();
      return stream.failure();
    }
    enum class AtEnd : uint8_t { over, needed_again };
    const auto attempt = [&]() -> base::Result<AtEnd> {
      base::Status sent = send(*stream.value(), header(Kind::leave), leave);
      if (!sent) return sent.failure();
      base::Result<transport::Frame> ok = stream.value()->read();
      if (!ok) return ok.failure();
      if (kind_of(ok.value()) != Kind::ok) return unexpected(*coordinator.link, ok.value());
      sent = stream.value()->write(header(Kind::wait_end));
      if (!sent) return sent.failure();
      base::Result<transport::Frame> end = stream.value()->read();
      if (!end) return end.failure();
      if (kind_of(end.value()) != Kind::snapshot_end) return unexpected(*coordinator.link, end.value());
      take_records(parse<wire::Snapshot>(end.value()).ledger());
      return (end.value().header.flags & kLast) != 0 ? AtEnd::needed_again : AtEnd::over;
    };
    const base::Result<AtEnd> left = attempt();
    if (!left) {
      note(left.failure());
      coordinator.link->drop(left.failure().message());
      if (chief() && coordinator.link->stream("the end of training") && !coordinator.link->welcome().initialised()) {
        return join();
      }
      continue;
    }
    if (left.value() == AtEnd::needed_again) {
      for (const auto& part : parts_) part->link->drop("joining anew");
      return join();
    }
    rounds_ = 0;
    for (const auto& part : parts_) {
      base::Status pulled = pull(*part, part == parts_.front() ? 0 : parts_.front()->version);
      if (!pulled && !ended()) return pulled.failure();
    }
    return std::optional<StepInfo>();
  }
}

void PsExchange::end() {
  base::Result<transport::Stream*> stream = parts_.front()->link->stream("the end");
  if (!stream) return;
  if (stream.value()->write(header(Kind::end))) static_cast<void>(stream.value()->read());
  // The others hear it from ps:0 as well, unless they have lost it.
  for (size_t i = 1; i < parts_.size(); ++i) {
    base::Result<transport::Stream*> other = parts_[i]->link->current();
    if (other && other.value()->write(header(Kind::end))) static_cast<void>(other.value()->read());
  }
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
    note(taken.failure());
    const bool lost = std::any_of(parts_.begin(), parts_.end(),
                                  [](const auto& part) { return !part->link->welcome().initialised(); });
    if (lost) return taken;
  }
}

/// Keeps ps:0, and with it all servers, from making versions until `release`, so that their parts are of one version.
base::Status PsExchange::hold() {
  ServerPart& part = *parts_.front();
  base::Result<transport::Stream*> stream = part.link->stream("a snapshot");
  if (!stream) {
    given_up_ = true;
    return stream.failure();
  }
  base::Status asked = stream.value()->write(header(Kind::hold));
  base::Result<transport::Frame> answer = asked ? stream.value()->read() : asked.failure();
  if (answer && kind_of(answer.value()) == Kind::snapshot_end) {
    held_on_ = part.link->connections();
    return {};
  }
  const base::Failure failure = answer ? unexpected(*part.link, answer.value()) : answer.failure();
  part.link->drop(failure.message());
  return failure;
}

void PsExchange::release() {
  base::Result<transport::Stream*> stream = parts_.front()->link->stream("a snapshot");
  if (stream) static_cast<void>(stream.value()->write(header(Kind::release)));
}

base::Result<exchange::Snapshot> PsExchange::try_snapshot() {
  state_.resize(slot_names().size() + 1);
  for (std::vector<float>& array : state_) array.resize(parameters_.count());
  const bool several = parts_.size() > 1;
  base::Status held = several ? hold() : base::Status();
  if (!held) return held.failure();
  wire::Snapshot first;
  for (const auto& part : parts_) {
    base::Result<transport::Stream*> stream = part->link->stream("a snapshot");
    if (!stream) {
      given_up_ = true;
      return stream.failure();
    }
    transport::Header ask = header(Kind::snapshot);
    ask.version = first.version();
    ask.sequence = first.version();  // id that all servers' parts share
    wire::Snapshot end;
    base::Status sent = stream.value()->write(ask);
    base::Status came = sent ? read_state(*part, *stream.value(), end) : sent;
    if (!came) {
      part->link->drop(came.failure().message());
      return came.failure();
    }
    if (part == parts_.front()) first = end;
    // After a reconnection ps:0 is no longer held.
    const bool torn = several && parts_.front()->link->connections() != held_on_;
    if (torn || end.version() != first.version()) {
      release();
      return base::Failure{base::FailureKind::other, "the servers' parts are not of one snapshot"};
    }
  }
  if (several) release();
  std::copy(state_.front().begin(), state_.front().end(), parameters_.values().begin());
  take_records(first.ledger());
  exchange::Snapshot made;
  made.step = first.version();
  made.parameters = state_.front();
  const auto names = optim::slot_names(options_.rules.optimizer.method);
  for (size_t i = 1; i < state_.size(); ++i) made.slots.push_back({names[i - 1], state_[i]});
  made.progress = exchange::Snapshot::Progress{first.ledger().examples(), from_wire(first.remaining())};
  return made;
}

base::Status PsExchange::read_state(ServerPart& part, transport::Stream& stream, wire::Snapshot& end) {
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
    if (taken[i] != part.count) {
      return base::Failure{base::FailureKind::corrupt,
                           fmt::format("received {} of {} elements of the state", taken[i], part.count)};
    }
    size_t local = 0;
    for (const program::ParameterRange& range : part.ranges) {
      std::copy_n(shard[i].begin() + static_cast<ptrdiff_t>(local), range.count,
                  state_[i].begin() + static_cast<ptrdiff_t>(range.offset));
      local += range.count;
    }
  }
  part.version = end.version();
  return {};
}

}  // namespace lockstep::ps
