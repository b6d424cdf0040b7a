// A Job's snapshots: for the chief's checkpoints, and for the evaluator.
#include <algorithm>

#include "ps/job.h"

namespace lockstep::ps {
namespace {

// Limits of the snapshots kept for an evaluator that is slower than the checkpoints.
constexpr size_t kMostSnapshots = 64;
constexpr size_t kMostSnapshotBytes = size_t{1} << 30;

}  // namespace

void Job::hold(SessionId id) {
  if (!at(id).holds) ++held_;
  at(id).holds = true;
}

bool Job::release(SessionId id) {
  if (!at(id).holds) return false;
  at(id).holds = false;
  --held_;
  orders_.changed = true;
  return true;
}

void Job::snapshot(wire::Snapshot& end, double now) const {
  if (!coordinator_) return;
  coordinator_->save(*end.mutable_ledger(), now);
  to_wire(coordinator_->remaining(), *end.mutable_remaining());
}

bool Job::wanted(uint64_t snapshot) const {
  return (options_.evaluator || evaluator_came_) && (snapshots_.empty() || snapshots_.back().id < snapshot);
}

void Job::keep(uint64_t snapshot, std::shared_ptr<const std::vector<float>> parameters) {
  const size_t bytes = parameters->size() * sizeof(float);
  snapshots_.push_back({snapshot, std::move(parameters)});
  const size_t most = std::min(kMostSnapshots, kMostSnapshotBytes / std::max<size_t>(bytes, 1));
  while (snapshots_.size() > std::max<size_t>(most, 2)) snapshots_.pop_front();
  orders_.changed = true;
}

void Job::follow(uint64_t snapshot, bool exact) {
  evaluator_came_ = true;  // it may be outside the cluster spec
  const auto older = [&](const Kept& k) { return exact ? k.id < snapshot : k.id <= snapshot; };
  while (!snapshots_.empty() && older(snapshots_.front())) snapshots_.pop_front();
}

std::optional<Kept> Job::next_snapshot() {
  if (snapshots_.empty()) {
    evaluator_knows_end_ = true;
    return std::nullopt;
  }
  snapshot_taken_ = std::max(snapshot_taken_, snapshots_.front().id);
  return snapshots_.front();
}

bool Job::evaluator_is_behind() const { return !snapshots_.empty() && snapshots_.back().id > snapshot_taken_; }

}  // namespace lockstep::ps
