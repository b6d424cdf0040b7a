// A parameter server's snapshots: for the chief's checkpoints, and for the evaluator.
#include <algorithm>

#include "ps/server.h"
#include "ps/server_wait.h"

namespace lockstep::ps {
namespace {

// Limits of the snapshots kept for an evaluator that is slower than the checkpoints.
constexpr size_t kMostSnapshots = 64;
constexpr size_t kMostSnapshotBytes = size_t{1} << 30;

}  // namespace

void Server::release(const SessionPtr& session) {
  if (!session->holds) return;
  session->holds = false;
  --held_;
  commit_if_ready();
  changed_.notify_all();
}

void Server::on_hold(const SessionPtr& session) {
  wire::Snapshot held;
  {
    const base::MutexLock lock(mutex_);
    wait_for_parameters(session, "a snapshot");
    if (!session->holds) ++held_;
    session->holds = true;
    held.set_version(coordinator_->version());
  }
  static_cast<void>(send(session->stream, header(Kind::snapshot_end), held));
}

void Server::on_snapshot(const SessionPtr& session, const transport::Frame& frame) {
  View view;
  wire::Snapshot end;
  {
    const base::MutexLock lock(mutex_);
    wait_until(session, [&] {
      mutex_.assert_held();
      return initialised_ && shard_->version() >= frame.header.version;
    });
    wait_until(session, [&] {
      mutex_.assert_held();
      return job_->servers() == 1 || is_quiet();  // with several servers ps:0 is held: no update follows
    });
    view = shard_->current();
    if (coordinator_) {
      coordinator_->save(*end.mutable_ledger(), now());
      to_wire(coordinator_->remaining(), *end.mutable_remaining());
    }
    end.set_version(view.version);
    keep_for_evaluator(frame.header.sequence == 0 ? view.version : frame.header.sequence, view);
  }
  send_state(session, view, end);
}

/// Copies, because held Views would keep buffers from being reused for as long as the evaluator takes.
void Server::keep_for_evaluator(uint64_t id, const View& view) {
  const bool evaluator = !options_.spec.evaluator.empty() || evaluator_came_;
  if (!evaluator || (!snapshots_.empty() && snapshots_.back().id >= id)) return;
  snapshots_.push_back(
      {id, std::make_shared<const std::vector<float>>(view.parameters.begin(), view.parameters.end())});
  const size_t most = std::min(kMostSnapshots, kMostSnapshotBytes / std::max<size_t>(view.parameters.size_bytes(), 1));
  while (snapshots_.size() > std::max<size_t>(most, 2)) snapshots_.pop_front();
  changed_.notify_all();
}

void Server::on_follow(const SessionPtr& session, const transport::Frame& frame) {
  Kept kept;
  {
    const base::MutexLock lock(mutex_);
    evaluator_came_ = true;  // it may be outside the cluster spec
    const uint64_t id = frame.header.version;
    const bool exact = (frame.header.flags & kExact) != 0;
    const auto older = [&](const Kept& k) { return exact ? k.id < id : k.id <= id; };
    while (!snapshots_.empty() && older(snapshots_.front())) snapshots_.pop_front();
    wait_until(session, [&] {
      mutex_.assert_held();
      return !snapshots_.empty() || finishing_;
    });
    if (snapshots_.empty()) {
      evaluator_knows_end_ = true;
      static_cast<void>(session->stream.write(header(Kind::end)));
      return;
    }
    kept = snapshots_.front();
    snapshot_taken_ = std::max(snapshot_taken_, kept.id);
  }
  transport::Header part = header(Kind::state);
  if (!send_elements(session->stream, part, *kept.parameters, Element::kFloat32, kept.parameters, nullptr)) return;
  transport::Header last = header(Kind::snapshot_end);
  last.version = kept.id;
  static_cast<void>(session->stream.write(last));
}

void Server::send_state(const SessionPtr& session, const View& view, const wire::Snapshot& end) {
  transport::Header part = header(Kind::state);
  part.version = view.version;
  if (!send_elements(session->stream, part, view.parameters, Element::kFloat32, view.hold, nullptr)) return;
  for (size_t i = 0; i < view.slots.size(); ++i) {
    part.extra = i + 1;
    if (!send_elements(session->stream, part, view.slots[i], Element::kFloat32, view.hold, nullptr)) return;
  }
  transport::Header last = header(Kind::snapshot_end);
  last.version = view.version;
  static_cast<void>(send(session->stream, last, end));
}

}  // namespace lockstep::ps
