// How a parameter server handles members that join and leave, and those who ask for its state.
#include <fmt/format.h>

#include "lockstep/error.h"
#include "ps/server.h"

namespace lockstep::ps {

void Server::on_join(Session& session, const transport::Frame& frame) {
  const base::MutexLock lock(mutex_);
  wait_for_parameters(session, "joining", [this, &session, header = frame.header] {
    mutex_.assert_held();
    job_.join(session.id, header.version, header.extra);
    settle();
    wait_for(session, {Wait::joining}, [this, &session] {
      mutex_.assert_held();
      const wire::Reply reply = job_.join_reply(session.id);
      send_parameters(session, take_view(session), reply, 0);
    });
  });
  go_on(session);
}

void Server::on_pull(Session& session, const transport::Frame& frame) {
  const base::MutexLock lock(mutex_);
  wait_for_parameters(session, "a pull", [this, &session, version = frame.header.version] {
    mutex_.assert_held();
    wait_for(session, {Wait::version, version}, [this, &session] {
      mutex_.assert_held();
      send_parameters(session, take_view(session), {}, 0);
    });
  });
  go_on(session);
}

void Server::on_leave(Session& session, const transport::Frame& frame) {
  const auto leave = parse<wire::Leave>(frame);
  if (leave.stop() > static_cast<uint32_t>(train::StopReason::error) || leave.rounds() < 0) {
    throw DataError(fmt::format("invalid end of a member: reason {} after {} rounds", leave.stop(), leave.rounds()));
  }
  const base::MutexLock lock(mutex_);
  wait_for_parameters(session, "leaving", [this, &session, leave] {
    mutex_.assert_held();
    job_.leave(session.id, leave, now());
    settle();
    static_cast<void>(session.stream.write(header(Kind::ok)));
  });
  go_on(session);
}

void Server::on_wait_end(Session& session) {
  const base::MutexLock lock(mutex_);
  wait_for_parameters(session, "waiting for the end", [this, &session] {
    mutex_.assert_held();
    wait_for(session, {Wait::end}, [this, &session] {
      mutex_.assert_held();
      wire::Snapshot end;
      const bool again = job_.end_of(session.id, end, now());
      transport::Header answer = header(Kind::snapshot_end);
      answer.flags = again ? kLast : 0;
      static_cast<void>(send(session.stream, answer, end));
    });
  });
  go_on(session);
}

/// Commits the ledger at once, because no version follows that would carry it.
void Server::on_stop(Session& session, train::StopReason reason) {
  const base::MutexLock lock(mutex_);
  wait_for(session, {Wait::version}, [this, reason] {
    mutex_.assert_held();
    job_.stop(reason);
    const std::string ledger = job_.ledger(now());
    shard_->commit_ledger(std::as_bytes(std::span(ledger)));
    settle();
  });
  go_on(session);
}

void Server::on_end(Session& session) {
  static_cast<void>(session.stream.write(header(Kind::ok)));
  const base::MutexLock lock(mutex_);
  job_.finish_training(now());
  settle();
  ending_.notify_all();
}

void Server::on_hold(Session& session) {
  const base::MutexLock lock(mutex_);
  wait_for_parameters(session, "a snapshot", [this, &session] {
    mutex_.assert_held();
    job_.hold(session.id);
    wait_for(session, {Wait::version}, [this, &session] {  // for an update under way
      mutex_.assert_held();
      wire::Snapshot held;
      held.set_version(job_.version());
      static_cast<void>(send(session.stream, header(Kind::snapshot_end), held));
    });
  });
  go_on(session);
}

void Server::on_snapshot(Session& session, const transport::Frame& frame) {
  const base::MutexLock lock(mutex_);
  wait_for_parameters(session, "a snapshot", [this, &session, header = frame.header] {
    mutex_.assert_held();
    wait_for(session, {Wait::version, header.version}, [this, &session, header] {
      mutex_.assert_held();
      wait_for(session, {Wait::snapshot}, [this, &session, header] {
        mutex_.assert_held();
        take_snapshot(session, header.sequence);
      });
    });
  });
  go_on(session);
}

void Server::take_snapshot(Session& session, uint64_t sequence) {
  const View view = shard_->current();
  wire::Snapshot end;
  job_.snapshot(end, now());
  end.set_version(view.version);
  const uint64_t id = sequence == 0 ? view.version : sequence;
  // Copied, because held Views would keep buffers from being reused for as long as the evaluator takes.
  if (job_.wanted(id)) {
    job_.keep(id, std::make_shared<const std::vector<float>>(view.parameters.begin(), view.parameters.end()));
    carry_out(job_.orders());
  }
  send_state(session, view, end);
}

void Server::on_follow(Session& session, const transport::Frame& frame) {
  const base::MutexLock lock(mutex_);
  job_.follow(frame.header.version, (frame.header.flags & kExact) != 0);
  wait_for(session, {Wait::news}, [this, &session] {
    mutex_.assert_held();
    const std::optional<Kept> kept = job_.next_snapshot();
    if (!kept) {
      static_cast<void>(session.stream.write(header(Kind::end)));
      return;
    }
    send_later(session, header(Kind::state), *kept->parameters, kept->parameters, std::nullopt);
    session.outgoing.emplace_back([&session, id = kept->id] {
      transport::Header last = header(Kind::snapshot_end);
      last.version = id;
      static_cast<void>(session.stream.write(last));
      return false;
    });
  });
  go_on(session);
}

}  // namespace lockstep::ps
