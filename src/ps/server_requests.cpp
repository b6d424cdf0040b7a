// How a parameter server handles members that join and leave, and those who ask for its state.
#include <fmt/format.h>

#include "lockstep/error.h"
#include "ps/server.h"

namespace lockstep::ps {

void Server::on_join(Session& session, const transport::Frame& frame) {
  View view;
  wire::Reply reply;
  {
    const base::MutexLock lock(mutex_);
    wait_for_parameters(session, "joining");
    job_.join(session.id, frame.header.version, frame.header.extra);
    settle();
    wait_for(session, {Wait::joining});
    reply = job_.join_reply(session.id);
    view = take_view(session);
  }
  send_parameters(session, view, reply, 0);
}

void Server::on_pull(Session& session, const transport::Frame& frame) {
  View view;
  {
    const base::MutexLock lock(mutex_);
    wait_for_parameters(session, "a pull");
    wait_for(session, {Wait::version, frame.header.version});
    view = take_view(session);
  }
  send_parameters(session, view, {}, 0);
}

void Server::on_leave(Session& session, const transport::Frame& frame) {
  const auto leave = parse<wire::Leave>(frame);
  if (leave.stop() > static_cast<uint32_t>(train::StopReason::error) || leave.rounds() < 0) {
    throw DataError(fmt::format("invalid end of a member: reason {} after {} rounds", leave.stop(), leave.rounds()));
  }
  {
    const base::MutexLock lock(mutex_);
    wait_for_parameters(session, "leaving");
    job_.leave(session.id, leave, now());
    settle();
  }
  static_cast<void>(session.stream.write(header(Kind::ok)));
}

void Server::on_wait_end(Session& session) {
  bool again = false;
  wire::Snapshot end;
  {
    const base::MutexLock lock(mutex_);
    wait_for_parameters(session, "waiting for the end");
    wait_for(session, {Wait::end});
    again = job_.end_of(session.id, end, now());
  }
  transport::Header answer = header(Kind::snapshot_end);
  answer.flags = again ? kLast : 0;
  static_cast<void>(send(session.stream, answer, end));
}

/// Commits the ledger at once, because no version follows that would carry it.
void Server::on_stop(Session& session, train::StopReason reason) {
  const base::MutexLock lock(mutex_);
  wait_for(session, {Wait::version});
  job_.stop(reason);
  const std::string ledger = job_.ledger(now());
  shard_->commit_ledger(std::as_bytes(std::span(ledger)));
  settle();
}

void Server::on_end(Session& session) {
  static_cast<void>(session.stream.write(header(Kind::ok)));
  const base::MutexLock lock(mutex_);
  job_.finish_training(now());
  settle();
  ending_.notify_all();
}

void Server::on_hold(Session& session) {
  wire::Snapshot held;
  {
    const base::MutexLock lock(mutex_);
    wait_for_parameters(session, "a snapshot");
    job_.hold(session.id);
    wait_for(session, {Wait::version});  // for an update under way
    held.set_version(job_.version());
  }
  static_cast<void>(send(session.stream, header(Kind::snapshot_end), held));
}

void Server::on_snapshot(Session& session, const transport::Frame& frame) {
  View view;
  wire::Snapshot end;
  {
    const base::MutexLock lock(mutex_);
    wait_for_parameters(session, "a snapshot");
    wait_for(session, {Wait::version, frame.header.version});
    wait_for(session, {Wait::snapshot});
    view = shard_->current();
    job_.snapshot(end, now());
    end.set_version(view.version);
    const uint64_t id = frame.header.sequence == 0 ? view.version : frame.header.sequence;
    // Copied, because held Views would keep buffers from being reused for as long as the evaluator takes.
    if (job_.wanted(id)) {
      job_.keep(id, std::make_shared<const std::vector<float>>(view.parameters.begin(), view.parameters.end()));
      carry_out(job_.orders());
    }
  }
  send_state(session, view, end);
}

void Server::on_follow(Session& session, const transport::Frame& frame) {
  std::optional<Kept> kept;
  {
    const base::MutexLock lock(mutex_);
    job_.follow(frame.header.version, (frame.header.flags & kExact) != 0);
    wait_for(session, {Wait::news});
    kept = job_.next_snapshot();
    if (!kept) {
      static_cast<void>(session.stream.write(header(Kind::end)));
      return;
    }
  }
  transport::Header part = header(Kind::state);
  if (!send_elements(session.stream, part, *kept->parameters, Element::kFloat32, kept->parameters, nullptr)) return;
  transport::Header last = header(Kind::snapshot_end);
  last.version = kept->id;
  static_cast<void>(session.stream.write(last));
}

void Server::send_state(Session& session, const View& view, const wire::Snapshot& end) {
  transport::Header part = header(Kind::state);
  part.version = view.version;
  if (!send_elements(session.stream, part, view.parameters, Element::kFloat32, view.hold, nullptr)) return;
  for (size_t i = 0; i < view.slots.size(); ++i) {
    part.extra = i + 1;
    if (!send_elements(session.stream, part, view.slots[i], Element::kFloat32, view.hold, nullptr)) return;
  }
  transport::Header last = header(Kind::snapshot_end);
  last.version = view.version;
  static_cast<void>(send(session.stream, last, end));
}

}  // namespace lockstep::ps
