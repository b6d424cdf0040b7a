#include "ps/job.h"

#include <fmt/format.h>

#include <algorithm>

#include "cluster/spec.h"
#include "lockstep/error.h"

namespace lockstep::ps {
namespace {

constexpr size_t kMostNames = 8;  ///< in a line

}  // namespace

Job::Job(JobOptions options, double now)
    : options_(std::move(options)), alone_since_(now), away_since_(now), evaluator_heard_(now) {}

int Job::active() const { return coordinator_ ? coordinator_->active() : static_cast<int>(current_.size()); }

// Data streams.

SessionId Job::open(const wire::Hello& hello, double now) {
  const SessionId id = ++latest_session_;
  Session& session = sessions_[id];
  session.member = hello.member();
  session.incarnation = hello.incarnation();
  session.role = hello.role();
  session.evaluates = session.role.starts_with("evaluator:");
  session.heard = now;
  if (session.member < 0 && !session.evaluates) return id;
  SessionId& place = session.evaluates ? evaluator_ : current_[session.member];
  if (place != 0) give_up(place, "a newer connection of " + session.role);
  place = id;
  return id;
}

void Job::greeted(SessionId id) { at(id).told_generation = generation_; }

void Job::give_up(SessionId id, const std::string& why) {
  at(id).given_up = true;
  orders_.dropped.emplace_back(id, why);
  orders_.changed = true;
}

bool Job::close(SessionId id) {
  release(id);
  between_.erase(id);
  const int member = at(id).member;
  const bool last = member >= 0 && is_current(id);
  if (last) current_.erase(member);
  if (evaluator_ == id) evaluator_ = 0;
  sessions_.erase(id);
  orders_.changed = true;
  return last;
}

bool Job::is_current(SessionId id) const {
  if (evaluator_ == id) return true;
  const auto found = current_.find(at(id).member);
  return found != current_.end() && found->second == id;
}

bool Job::gone(SessionId id) const { return !is_current(id) || at(id).given_up; }

void Job::wait(SessionId id, const Waiting& what) {
  at(id).waiting = what;
  const bool between =
      what.what == Wait::joining || what.what == Wait::version || what.what == Wait::snapshot || what.what == Wait::end;
  between ? static_cast<void>(between_.insert(id)) : static_cast<void>(between_.erase(id));
}

bool Job::answers_first() const {
  return std::any_of(between_.begin(), between_.end(), [this](SessionId id) { return !gone(id) && over(id); });
}

void Job::wait_for_parameters(SessionId id, const char* what) {
  if (!initialised_ && at(id).member == 0) {
    throw DataError(std::string("the chief must set the parameters before ") + what);
  }
  wait(id, {Wait::parameters});
}

bool Job::over(SessionId id) const {
  const Session& session = at(id);
  const bool stopped = coordinator_ && coordinator_->stopped() != train::StopReason::none;
  switch (session.waiting.what) {
    case Wait::nothing:
      return true;
    case Wait::parameters:
      return initialised_;
    case Wait::decision:
      return is_decided(session);
    case Wait::slower:
      return !coordinator_ || coordinator_->may_go_on(session.member);
    case Wait::joining:
      return !updating() && (coordinator_->takes_part(session.member, session.incarnation) || stopped);
    case Wait::version:
      return initialised_ && !updating() && version() >= session.waiting.version;
    case Wait::snapshot:  // with several servers ps:0 is held: no update follows
      return initialised_ && !updating() && (config_.servers() == 1 || is_quiet());
    case Wait::news:
      return !snapshots_.empty() || finishing_;
    case Wait::end:
      return !updating() && (coordinator_->all_done() || coordinator_->needed_again(session.member) ||
                             // another process joined in its place, so its leaving did not count
                             coordinator_->incarnation(session.member) != session.incarnation ||
                             (session.member == 0 && !without_state_.empty()));
  }
  return true;
}

bool Job::is_applied(const Push& push) const {
  if (!coordinator_) return follower_->is_applied(push.member, {push.incarnation, push.sequence});
  return coordinator_->incarnation(push.member) == push.incarnation &&
         coordinator_->is_applied(push.member, push.sequence);
}

bool Job::is_decided(const Session& session) const {
  if (concerns_update(session)) return false;
  if (session.verdict != Verdict::accepted) return true;
  if (!initialised_) return false;
  const bool decided = config_.sync() ? version() > session.push.base : is_applied(session.push);
  if (decided || !coordinator_) return decided;
  return coordinator_->stopped() != train::StopReason::none ||
         !coordinator_->takes_part(session.member, session.incarnation);
}

bool Job::concerns_update(const Session& session) const {
  if (!making_) return false;
  if (config_.sync()) return true;
  if (coordinator_ && coordinator_->stopped() != train::StopReason::none) return true;  // it may have brought the end
  const auto& from = making_->contributors;
  return std::any_of(from.begin(), from.end(), [&](const Contributor& c) { return c.member == session.member; });
}

std::string Job::names_of(const std::vector<int>& members, const std::vector<int>& servers) const {
  std::string names;
  size_t count = 0;
  const auto add = [&](const std::string& name) {
    if (++count <= kMostNames) names += (names.empty() ? "" : ", ") + name;
  };
  const auto named = [](const std::vector<std::string>& all, int number) {
    const auto index = static_cast<size_t>(number);  // a state may be of a larger cluster
    return index < all.size() ? all[index] : "?";
  };
  for (const int member : members) add(named(options_.members, member));
  for (const int server : servers) add(named(options_.servers, server));
  if (count > kMostNames) names += fmt::format(" and {} more", count - kMostNames);
  return names;
}

std::string Job::pushes_awaited() const {
  const uint64_t step = version() + 1;
  if (updating()) return fmt::format("the update of step {}", version());
  if (no_room_since_ != 0) return "room for another copy of the parameters";
  if (!coordinator_) {
    const std::vector<Contributor> missing = follower_->missing();
    if (missing.empty()) return fmt::format("step {}: word of {}", step, options_.servers.front());
    std::vector<int> members;
    for (const Contributor& contributor : missing) members.push_back(contributor.member);
    return fmt::format("step {}: pushes of {}", step, names_of(members, {}));
  }
  if (held_ > 0) return "a snapshot of " + options_.members.front();
  const std::string names =
      names_of(config_.sync() ? coordinator_->awaited() : std::vector<int>(), coordinator_->awaited_servers());
  return names.empty() ? std::string() : fmt::format("step {}: {}", step, names);
}

std::string Job::reason(SessionId id) const {
  const Session& session = at(id);
  switch (session.waiting.what) {
    case Wait::nothing:
      return {};
    case Wait::parameters:
      return "the first parameters from " + options_.members.front();
    case Wait::version:
    case Wait::snapshot:
      if (!initialised_) return "the first parameters from " + options_.members.front();
      return is_quiet() ? fmt::format("step {}; {}", session.waiting.version, pushes_awaited()) : "updates under way";
    case Wait::decision:
      return initialised_ ? pushes_awaited() : "the first parameters from " + options_.members.front();
    case Wait::joining:
      return pushes_awaited();
    case Wait::slower:
      return "the slowest workers: " + names_of(coordinator_->awaited(), {});
    case Wait::news:
      return "the next snapshot";
    case Wait::end:
      return "the end of training: " + names_of(coordinator_->unfinished(), {});
  }
  return {};
}

// Control streams.

std::vector<Decision> Job::arrived(const wire::Hello& hello, double now) {
  if (hello.role().starts_with("evaluator:")) evaluator_heard_ = now;
  if (!coordinator_ || !hello.role().starts_with("ps:")) return {};
  const int server = cluster::parse_task(hello.role()).index;
  coordinator_->forget(server);
  if (!hello.initialised()) {
    if (initialised_) without_state_.insert(server);
    orders_.changed = true;
  }
  if (!hello.initialised() || hello.generation() != generation_) return {};
  std::optional<std::vector<Decision>> missed = coordinator_->missed(hello.version());
  if (missed && updating() && !missed->empty()) missed->pop_back();  // it is announced once it is stored
  if (missed) return std::move(*missed);
  throw RefusedError(
      RefusalKind::state,
      fmt::format("its state is of step {}, which does not fit ps:0's of step {}; resume from a checkpoint",
                  hello.version(), coordinator_->version()));
}

void Job::received(int server, const wire::Received& received) {
  const bool fits = coordinator_ && received.generation() == generation_ && received.member() >= 0 &&
                    received.member() < coordinator_->options().members;
  if (!fits) return;
  without_state_.erase(server);  // its hello may be older than its parameters
  coordinator_->reached(server, received.version());
  coordinator_->received(server, received.member(), received.incarnation(), received.sequence());
}

void Job::departed(const wire::Hello& hello, const std::string& why, const Peers& peers, double now) {
  orders_.changed = true;
  if (finishing_) return;
  // The process has another control stream already: it was cut off for a while, and is back.
  if (peers.has(hello.role(), hello.incarnation())) return;
  // A worker that only asked for the run's name is not a member.
  bool counted = hello.role().starts_with("ps:") || hello.role().starts_with("evaluator:");
  if (hello.member() >= 0 && coordinator_) {
    const bool finished = coordinator_->finished(hello.member());
    counted = coordinator_->depart(hello.member(), hello.incarnation()) && !finished;
    if (counted) lost_at_[hello.member()] = now;
  }
  const auto found = current_.find(hello.member());
  if (found != current_.end() && at(found->second).incarnation == hello.incarnation()) give_up(found->second, why);
  const bool member = hello.member() >= 0;
  const std::string name = member ? names_of({hello.member()}, {}) : std::string(hello.role());
  if (counted && coordinates()) say("warning", fmt::format("{}: {}; training goes on", name, why));
}

void Job::stream_ended(const wire::Hello& hello, const Peers& peers, double now) {
  if (!peers.has(hello.role(), hello.incarnation())) vanished_[hello.incarnation()] = {hello, now};
}

// Following ps:0.

void Job::introduce_to_ps0(wire::Hello& hello) const {
  hello.set_initialised(initialised_);
  hello.set_generation(generation_);
  if (initialised_) hello.set_version(follower_->version());
}

void Job::ps0_connected(double now) {
  following_ = true;
  ps0_silence_.heard(now);
}

void Job::ps0_welcomed() {
  welcomed_ = true;
  if (!follower_) return;
  tell_version();
  for (const auto& [member, push] : follower_->here()) tell_received(member, push);
}

void Job::heard_of_ps0(double now) {
  ps0_silence_.heard(now);
  if (std::exchange(told_silence_, false)) say("info", options_.servers.front() + " is back");
}

void Job::ps0_lost(double now) {
  following_ = welcomed_ = false;
  if (!told_silence_) away_since_ = now;
}

void Job::ps0_unreachable(const std::string& why, double now) {
  if (now - away_since_ <= options_.patience) return;
  orders_.end = fmt::format("ps:{}: {}: {} for {:.0f} s; giving up", options_.index, options_.servers.front(), why,
                            options_.patience);
}

void Job::tell_received(int member, const PushName& push) {
  if (welcomed_) orders_.received.emplace_back(member, push);
}

/// No push: ps:0 learns which parameters this server has, which may have come after its hello.
void Job::tell_version() { tell_received(0, {}); }

void Job::announced(const wire::Commit& commit, double now) {
  if (initialised_ && commit.generation() == generation_) follower_->announced(from_wire(commit), now);
}

}  // namespace lockstep::ps
