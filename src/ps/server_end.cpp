// How a parameter server handles members that leave, and the end of training.
#include <fmt/format.h>

#include "lockstep/error.h"
#include "ps/server.h"
#include "ps/server_wait.h"

namespace lockstep::ps {

void Server::on_leave(const SessionPtr& session, const transport::Frame& frame) {
  const auto leave = parse<wire::Leave>(frame);
  if (leave.stop() > static_cast<uint32_t>(train::StopReason::error) || leave.rounds() < 0) {
    throw DataError(fmt::format("invalid end of a member: reason {} after {} rounds", leave.stop(), leave.rounds()));
  }
  {
    const base::MutexLock lock(mutex_);
    wait_for_parameters(session, "leaving");
    const int member = session->hello.member();
    WorkerHistory& record = coordinator_->record(member);
    record.loss = leave.loss();
    record.accuracy = leave.accuracy();
    coordinator_->finish(member, session->hello.incarnation(), static_cast<train::StopReason>(leave.stop()),
                         leave.rounds(), now());
    commit_if_ready();
    changed_.notify_all();
  }
  static_cast<void>(session->stream.write(header(Kind::ok)));
}

void Server::on_wait_end(const SessionPtr& session) {
  const int member = session->hello.member();
  bool again = false;
  wire::Snapshot end;
  {
    const base::MutexLock lock(mutex_);
    wait_for_parameters(session, "waiting for the end");
    wait_until(session, [&] {
      mutex_.assert_held();
      return coordinator_->all_done() || coordinator_->needed_again(member) || (member == 0 && server_lost_state_);
    });
    // If a server lost its state, the chief must stay to restore it.
    again = !coordinator_->all_done() || (member == 0 && server_lost_state_);
    coordinator_->save(*end.mutable_ledger(), now());
    end.set_version(coordinator_->version());
  }
  transport::Header answer = header(Kind::snapshot_end);
  answer.flags = again ? kLast : 0;
  static_cast<void>(send(session->stream, answer, end));
}

/// Commits the ledger at once, because no version follows that would carry it.
void Server::on_stop(const SessionPtr& session, train::StopReason reason) {
  const base::MutexLock lock(mutex_);
  wait_until(session, [&] {
    mutex_.assert_held();
    return initialised_;
  });
  coordinator_->stop(reason);
  const std::string ledger = checked_ledger();
  shard_->commit_ledger(std::as_bytes(std::span(ledger)));
  changed_.notify_all();
}

}  // namespace lockstep::ps
