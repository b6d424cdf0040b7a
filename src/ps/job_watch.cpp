// A Job's deadlines, its lines about stragglers, and the end.
#include <fmt/format.h>

#include <utility>

#include "lockstep/error.h"
#include "ps/job.h"
#include "wire/liveness.h"

namespace lockstep::ps {
namespace {

constexpr double kSilenceSeconds = std::chrono::duration<double>(wire::kSilence).count();
constexpr double kStraggler = 5;    ///< seconds of waiting for a straggler that are worth a line
constexpr double kLeaveWait = 20;   ///< seconds for the evaluator to take the last snapshot, and for others to leave
constexpr double kRejoinWait = 10;  ///< seconds for a worker lost shortly before the end to return
constexpr double kLateEvaluatorWait = 10;  ///< seconds that the evaluator may start later than this server

}  // namespace

std::map<int, std::string> Job::awaited() const {
  std::map<int, std::string> awaited;
  if (!coordinator_) return awaited;
  for (const int member : coordinator_->awaited()) {
    awaited[member] = fmt::format("its push of step {}", coordinator_->version() + 1);
  }
  return awaited;
}

void Job::expire(double now) {
  orders_.changed = true;  // wakes waits whose deadline has passed
  if (!coordinator_) return;
  for (const int member : coordinator_->expire(now, !current_.empty())) {
    say("warning", fmt::format("{} has not joined; training goes on without it", names_of({member}, {})));
  }
}

void Job::watch(const Peers& peers, bool interrupted, double now) {
  if (coordinator_) warn_of_stragglers(now);
  give_up_silent(peers, now);
  remove_vanished(peers, now);
  watch_ps0(now);
  if (!current_.empty()) alone_since_ = now;
  if (interrupted && coordinator_) coordinator_->stop(train::StopReason::interrupted);
  if (interrupted && current_.empty()) orders_.end = std::string();
  if (now - alone_since_ > options_.patience && !orders_.end) {
    orders_.end = fmt::format("ps:{}: nobody has trained for {:.0f} s; giving up", options_.index, options_.patience);
  }
}

void Job::warn_of_stragglers(double now) {
  const std::vector<int> servers = coordinator_->awaited_servers();
  if (servers.empty()) servers_since_ = now;
  const bool waits = !finishing_ && now - version_since_ > kStraggler;
  if (!waits || warned_ || coordinator_->active() == 0 || held_ > 0) return;
  const std::string names = names_of(coordinator_->options().sync ? coordinator_->awaited() : std::vector<int>(),
                                     now - servers_since_ > kStraggler ? servers : std::vector<int>());
  if (!names.empty()) {
    say("warning",
        fmt::format("step {} has waited {:.0f} s for {}", coordinator_->version() + 1, now - version_since_, names));
  }
  warned_ = !names.empty();
}

/// Drops streams that train but send no heartbeats.
void Job::give_up_silent(const Peers& peers, double now) {
  for (auto& [id, session] : sessions_) {
    if (!is_current(id)) continue;
    if (peers.has(session.role, session.incarnation)) session.heard = now;
    if (session.heard < now - kSilenceSeconds && !session.given_up) give_up(id, "no heartbeats received");
  }
}

void Job::remove_vanished(const Peers& peers, double now) {
  for (auto next = vanished_.begin(); next != vanished_.end();) {
    if (now - next->second.since < kSilenceSeconds) {
      ++next;
      continue;
    }
    const wire::Hello hello = next->second.hello;
    next = vanished_.erase(next);
    const auto found = current_.find(hello.member());
    const bool back = found != current_.end() && at(found->second).incarnation == hello.incarnation();
    if (!back) departed(hello, "its connection closed", peers, now);
  }
}

void Job::watch_ps0(double now) {
  const std::optional<double> silent = ps0_silence_.look(now);
  if (!following_ || !silent) return;
  const std::string why = fmt::format("no heartbeat for {:.1f} s", *silent);
  if (!std::exchange(told_silence_, true)) {
    say("warning", fmt::format("{}: {}; ps:{} connects again", options_.servers.front(), why, options_.index));
  }
  orders_.drop_ps0 = why;
}

// Members that leave, and the end.

void Job::leave(SessionId id, const wire::Leave& leave, double now) {
  const Session& session = at(id);
  WorkerHistory& record = coordinator_->record(session.member);
  record.loss = leave.loss();
  record.accuracy = leave.accuracy();
  coordinator_->finish(session.member, session.incarnation, static_cast<train::StopReason>(leave.stop()),
                       leave.rounds(), now);
  orders_.changed = true;
}

bool Job::end_of(SessionId id, wire::Snapshot& end, double now) {
  coordinator_->save(*end.mutable_ledger(), now);
  end.set_version(coordinator_->version());
  // If a server lost its state, the chief must stay to restore it.
  return !coordinator_->all_done() || (at(id).member == 0 && !without_state_.empty());
}

void Job::stop(train::StopReason reason) {
  coordinator_->stop(reason);
  orders_.changed = true;
}

void Job::finish_training(double now) {
  finishing_ = true;
  finishing_since_ = now;
  orders_.changed = true;
}

/// After the end: returns true if a process may still connect to hear of it or to take the last snapshot.
bool Job::may_come(double now) const {
  // A process that is still starting should hear of the end, not wait for a server that is gone.
  for (int member = 0; coordinator_ && member < coordinator_->options().members; ++member) {
    if (know_end_.contains(member)) continue;
    if (coordinator_->presence(member) == Coordinator::Presence::absent) return true;
    // Training may have waited for its last gradient before the end.
    const auto lost = lost_at_.find(member);
    const bool lately = lost != lost_at_.end() && finishing_since_ - lost->second < kRejoinWait + kLostGradient;
    if (lately && now - std::max(lost->second, finishing_since_) < kRejoinWait) return true;
  }
  const bool evaluator = options_.evaluator && !evaluator_knows_end_ && (coordinates() || evaluator_is_behind());
  return evaluator && now - evaluator_heard_ < kLateEvaluatorWait;
}

bool Job::may_leave(const Peers& peers, double now) const {
  const bool evaluator = peers.any([](const Peer& peer) { return peer.role.starts_with("evaluator"); });
  // A process that has not heard of the end would look for this server long after it is gone.
  const bool unaware = peers.any([](const Peer& peer) { return !peer.role.starts_with("ps:") && !peer.knows_end; });
  const bool others = peers.any([](const Peer& peer) { return !peer.role.starts_with("evaluator"); });
  const bool wait = (coordinates() && others) || may_come(now) || unaware || (evaluator && evaluator_is_behind());
  return !wait || now - finishing_since_ > kLeaveWait;
}

}  // namespace lockstep::ps
