// How a worker joins and leaves, and how the chief gets the whole state for a checkpoint.
#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"
#include "ps/server_part.h"

namespace lockstep::ps {

using exchange::StepInfo;

base::Result<std::optional<StepInfo>> PsExchange::join() {
  base::Result<std::optional<StepInfo>> joined = flow_->join();
  left_finish_ = Clock::now();
  return joined;
}

base::Result<std::optional<StepInfo>> PsExchange::leave(const exchange::Farewell& farewell) {
  base::Result<std::optional<StepInfo>> left = flow_->leave(farewell);
  left_finish_ = Clock::now();
  return left;
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
  state_.resize(slot_names().size() + 1);
  for (std::vector<float>& array : state_) array.resize(parameters_.count());
  base::Status taken = flow_->snapshot();
  if (!taken) return taken.failure();
  std::copy(state_.front().begin(), state_.front().end(), parameters_.values().begin());
  take_records(snapshot_.ledger());
  exchange::Snapshot made;
  made.step = snapshot_.version();
  made.parameters = state_.front();
  const auto names = optim::slot_names(options_.rules.optimizer.method);
  for (size_t i = 1; i < state_.size(); ++i) made.slots.push_back({names[i - 1], state_[i]});
  made.progress = exchange::Snapshot::Progress{snapshot_.ledger().examples(), from_wire(snapshot_.remaining())};
  return made;
}

base::Result<wire::Snapshot> PsExchange::read_state(ServerPart& part, uint64_t version) {
  base::Result<transport::Stream*> found = part.link->current();
  if (!found) return found.failure();
  transport::Stream& stream = *found.value();
  transport::Header ask = header(Kind::snapshot);
  ask.version = version;
  ask.sequence = version;  // id that all servers' parts share
  base::Status sent = stream.write(ask);
  if (!sent) return sent.failure();
  wire::Snapshot end;
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
  return end;
}

}  // namespace lockstep::ps
