// A running group: losses, new members, its end.
#include <fmt/format.h>

#include <algorithm>

#include "allreduce/elastic/assembly.h"

namespace lockstep::allreduce::elastic {
namespace {

constexpr double kLastStep = 2;  ///< seconds to finish a step that another member has finished
constexpr double kReturn = 3;    ///< seconds, while closing, for a leader whose connection broke to return
/// Seconds after its death in which a restarted member may come and should hear of the end.
constexpr double kReborn = 10;
/// Seconds after the start in which a late member may come and should hear of the end.
constexpr double kStarting = 10;
constexpr double kAlone = 2;  ///< seconds to wait for other members before signs of the end are believed

}  // namespace

void Assembly::break_group(const std::string& why) {
  if (!broken_.empty()) return;
  broken_ = why;
  wants_regroup_ = false;
}

void Assembly::watch_group(double now) {
  if (!broken_.empty()) return;
  for (const Seat& seat : group_.seats) {
    if (seat.member == rules_.me) continue;
    Peer& peer = at(seat.member);
    const bool here = alive(seat);
    const bool left = here && peer.status.left >= group_.number;
    if (here && !left) continue;
    if (!here && !knows_end_) {
      return break_group(fmt::format("{}: {}", name(seat.member), peer.here ? "it was restarted" : peer.why));
    }
    // Messages that it sent before it left or ended may still be in flight.
    if (peer.left_since < 0) peer.left_since = now;
    if (now - peer.left_since > kLastStep) {
      return break_group(fmt::format("{} has left group {}", name(seat.member), group_.number));
    }
  }
}

bool Assembly::trains_apart(int member) const {
  const Peer& peer = at(member);
  const Group& other = peer.status.group;
  if (!rules_.allow_split || !peer.here || peer.status.phase != MemberPhase::running || other.id == group_.id)
    return false;
  return std::all_of(other.seats.begin(), other.seats.end(), [&](const Seat& seat) {
    // A group that a member has left is broken, and its others will notice soon.
    return seat.member != rules_.me && alive(seat) && at(seat.member).status.left < other.number &&
           reach_each_other(rules_.me, seat.member);
  });
}

void Assembly::look_for_newcomers(double now) {
  const bool wanted = wants_regroup_;
  wants_regroup_ = false;
  if (!broken_.empty() || knows_end_ || group_.seats.front().member != rules_.me) return;
  std::vector<int> all;
  std::vector<int> outside;
  std::vector<int> apart;
  for (const Seat& seat : group_.seats) all.push_back(seat.member);
  for (int member = 0; member < rules_.members; ++member) {
    const Peer& peer = at(member);
    const bool waits = peer.here && peer.status.phase == MemberPhase::forming && now >= peer.barred_until;
    if (waits && !in_group(group_, {member, peer.status.incarnation})) outside.push_back(member);
    if (trains_apart(member)) apart.push_back(member);
  }
  if (!apart.empty()) {
    wants_regroup_ = true;
    if (!wanted) log("warning", fmt::format("{} train in another group: both form one group", names_of(apart)));
    return;
  }
  if (outside.empty() || !may_regroup(wanted, now)) return;
  all.insert(all.end(), outside.begin(), outside.end());
  const std::vector<int> chosen = choose(all);
  std::vector<int> coming;
  for (const int member : outside) {
    if (std::binary_search(chosen.begin(), chosen.end(), member)) coming.push_back(member);
  }
  // No member of the group may be pushed out.
  wants_regroup_ = !coming.empty() && chosen.size() >= group_.seats.size() + coming.size();
  if (wants_regroup_ && !wanted) log("info", fmt::format("{} arrived and joins after this step", names_of(coming)));
}

void Assembly::announce(const Group& before) {
  std::vector<int> members;
  std::vector<int> gone;
  std::vector<int> come;
  for (const Seat& seat : group_.seats) {
    members.push_back(seat.member);
    if (!in_group(before, seat)) come.push_back(seat.member);
  }
  for (const Seat& seat : before.seats) {
    if (!in_group(group_, seat)) gone.push_back(seat.member);
  }
  announced_ = fmt::format("group {} of {} {} step {}", group_.number, names_of(members),
                           standing_.step == 0 ? "starts at" : "continues from", standing_.step);
  if (!gone.empty()) announced_ += ", without " + names_of(gone);
  if (!come.empty() && before.number > 0) announced_ += ", now with " + names_of(come);
}

void Assembly::withdraw(bool interrupted) {
  interrupted_ = interrupted_ || interrupted;
  if (promise_) drop_promise();
  if (decision_) left_ = std::max(left_, decision_->group.number);
  decision_.reset();
  phase_ = MemberPhase::starting;
  broadcast_status();
}

void Assembly::close(double now, bool interrupted) {
  interrupted_ = interrupted_ || interrupted;
  phase_ = MemberPhase::closing;
  wants_regroup_ = false;
  broadcast_status();
  react(now);
}

void Assembly::end(double /*now*/) {
  phase_ = MemberPhase::ended;
  knows_end_ = true;
  wants_regroup_ = false;
  broadcast_status();
}

int Assembly::leader(double now) const {
  if (phase_ != MemberPhase::running && phase_ != MemberPhase::closing && phase_ != MemberPhase::ended) return -1;
  for (const Seat& seat : group_.seats) {
    if (seat.member == rules_.me) return rules_.me;
    const Peer& peer = at(seat.member);
    if (alive(seat)) {
      if (peer.status.left < group_.number) return seat.member;
    } else if (!confirmed_dead(seat) && now - peer.lost_at < kReturn) {
      return seat.member;
    }
  }
  return -1;
}

bool Assembly::ends_all(const MemberStatus& status) const {
  if (status.phase != MemberPhase::ended && !status.knows_end) return false;
  return status.group.number >= group_.number && std::none_of(peers_.begin(), peers_.end(), [&](const Peer& peer) {
           return peer.here && peer.status.group.number > status.group.number;
         });
}

bool Assembly::all_informed() const {
  return std::all_of(group_.seats.begin(), group_.seats.end(), [this](const Seat& seat) {
    if (seat.member == rules_.me || !alive(seat)) return true;
    const MemberStatus& status = at(seat.member).status;
    return status.interrupted || status.knows_end || status.phase == MemberPhase::closing ||
           status.phase == MemberPhase::ended;
  });
}

bool Assembly::all_accounted_for() const {
  return std::all_of(group_.seats.begin(), group_.seats.end(),
                     [this](const Seat& seat) { return alive(seat) || confirmed_dead(seat); });
}

bool Assembly::ends_behind(const MemberStatus& status) const {
  if (status.group.number <= group_.number || in_group(status.group, {rules_.me, rules_.incarnation})) return false;
  // While its group runs, its status names the step at which that began.
  const bool counts = status.phase == MemberPhase::starting || status.phase == MemberPhase::forming ||
                      status.phase == MemberPhase::connecting;
  return status.interrupted && counts && status.step < standing_.step;
}

bool Assembly::went_on(const MemberStatus& status) const {
  if (status.group.number <= group_.number || ends_behind(status)) return false;
  const bool with_me = in_group(status.group, {rules_.me, rules_.incarnation});
  // A group that waited for this member has made no step, and a state on its way to that one is not there yet.
  return !with_me || (status.step > standing_.step && !status.earlier);
}

bool Assembly::left_behind() const {
  return std::any_of(group_.seats.begin(), group_.seats.end(), [this](const Seat& seat) {
    return seat.member != rules_.me && alive(seat) && went_on(at(seat.member).status);
  });
}

bool Assembly::has_state(int member) const {
  if (member == rules_.me) return !standing_.earlier;
  const MemberStatus& status = at(member).status;
  if (!status.whole || status.earlier || ends_behind(status)) return false;
  return status.group.number >= group_.number || status.step >= standing_.step;
}

bool Assembly::first_survivor() const {
  if (left_behind()) return false;
  const auto first = std::find_if(group_.seats.begin(), group_.seats.end(),
                                  [this](const Seat& seat) { return alive(seat) && has_state(seat.member); });
  return first != group_.seats.end() && first->member == rules_.me;
}

void Assembly::found_ending(uint64_t step, bool interrupted, double now) {
  const bool waits = phase_ == MemberPhase::forming || phase_ == MemberPhase::connecting;
  if (!waits || !failure_.empty()) return;
  if (standing_.live ? standing_.step > step : now - forming_since_ < kAlone) return;
  for (const Peer& peer : peers_) {
    const bool trains = peer.status.phase != MemberPhase::starting && peer.status.phase != MemberPhase::forming;
    const bool further = peer.status.live && peer.status.step > step;
    if (peer.here && (trains || further)) return;
  }
  knows_end_ = true;
  interrupted_ = interrupted_ || interrupted;
  fail("training is over", true);
  broadcast_status();
}

bool Assembly::may_leave(double now) const {
  for (int member = 0; member < rules_.members; ++member) {
    const Peer& peer = at(member);
    const bool expected = member != rules_.me && !peer.was_here && start_ >= 0 && now - start_ < kStarting;
    if (expected) return false;
    if (!peer.here && peer.asked_at >= 0 && now - peer.asked_at < kReborn) return false;
    if (member == rules_.me || !peer.was_here) continue;
    const bool in_mine = in_group(group_, {member, peer.status.incarnation});
    const MemberPhase phase = peer.status.phase;
    const bool busy =
        in_mine && peer.status.left < group_.number && phase != MemberPhase::closing && phase != MemberPhase::ended;
    if (peer.here && (!peer.status.knows_end || busy)) return false;
    if (!peer.here && !peer.status.knows_end && now - peer.lost_at < kReborn) return false;
  }
  return true;
}

}  // namespace lockstep::allreduce::elastic
