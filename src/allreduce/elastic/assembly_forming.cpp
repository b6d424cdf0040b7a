// Chooses the members of the next group and decides whether they are enough: the proposal.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "allreduce/elastic/assembly.h"

namespace lockstep::allreduce::elastic {
namespace {

constexpr double kMesh = 3;        ///< seconds to wait for connections missing between two others
constexpr double kWorthALine = 5;  ///< seconds of waiting before a warning; doubled each time

bool contains(const std::vector<int>& members, int member) {
  return std::find(members.begin(), members.end(), member) != members.end();
}

}  // namespace

bool Assembly::in_group(const Group& group, const Seat& seat) {
  return std::find(group.seats.begin(), group.seats.end(), seat) != group.seats.end();
}

void Assembly::fail(std::string why, bool over) {
  if (!failure_.empty()) return;
  failure_ = std::move(why);
  over_ = over;
  if (promise_) drop_promise();
}

std::vector<int> Assembly::candidates(double now) const {
  std::vector<int> found;
  for (int member = 0; member < rules_.members; ++member) {
    const Peer& peer = at(member);
    const bool forms = peer.here && peer.status.phase == MemberPhase::forming && now >= peer.barred_until;
    if (member == rules_.me || forms) found.push_back(member);
  }
  return found;
}

bool Assembly::reach_each_other(int a, int b) const {
  const auto reaches = [this](int from, int to) {
    if (from == rules_.me) return at(to).here;
    const std::vector<int>& reach = at(from).status.reach;
    return std::binary_search(reach.begin(), reach.end(), to);
  };
  return a == b || (reaches(a, b) && reaches(b, a));
}

std::vector<int> Assembly::choose(std::vector<int> from) const {
  const auto key = [this](int member) {
    const MemberStatus status = status_of(member);
    const bool before = in_group(group_, {member, status.incarnation});
    return std::make_tuple(member != rules_.me, !status.live, ~status.step, !before, member);
  };
  std::sort(from.begin(), from.end(), [&](int a, int b) { return key(a) < key(b); });
  std::vector<int> chosen;
  for (const int member : from) {
    if (rules_.max_workers > 0 && static_cast<int>(chosen.size()) >= rules_.max_workers) break;
    const bool fits = std::all_of(chosen.begin(), chosen.end(), [&](int c) { return reach_each_other(member, c); });
    if (fits) chosen.push_back(member);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

/// True if others must act first: members still in a group, or those with the right to propose.
bool Assembly::must_wait_for_others(double now) {
  for (int member = 0; member < rules_.members; ++member) {
    const Peer& peer = at(member);
    if (!peer.here) continue;
    const MemberStatus& status = peer.status;
    if (ends_all(status)) {
      fail("training is over", true);
      return true;
    }
    if (status.phase == MemberPhase::closing) {
      // They may all die before they finish; then this member is needed.
      awaited_ = fmt::format("{} and its group to write their results", name(member));
      forming_since_ = now;
      return true;
    }
    if (status.phase != MemberPhase::running && status.phase != MemberPhase::connecting) continue;
    const bool mine = status.group.id == group_.id && group_.number > 0;
    if (mine) {
      awaited_ = fmt::format("{} to leave group {}: it is slow, not dead", name(member), group_.number);
    } else {
      awaited_ = fmt::format("{} and its group to let {} in", name(member), short_name(rules_.me));
      const bool full = rules_.max_workers > 0 && static_cast<int>(status.group.seats.size()) >= rules_.max_workers;
      if (full) forming_since_ = now;  // it waits outside for as long as the group is full
    }
    return true;
  }
  const std::vector<int> all = candidates(now);
  const auto live = std::find_if(all.begin(), all.end(), [this](int member) { return status_of(member).live; });
  const int proposer = live != all.end() ? *live : all.front();
  if (proposer == rules_.me) return false;
  awaited_ = fmt::format("{} to propose a group", name(proposer));
  return true;
}

void Assembly::propose_if_ready(double now) {
  if (promise_ || !failure_.empty() || must_wait_for_others(now) || now < next_try_) return;
  const std::vector<int> all = candidates(now);
  const std::vector<int> chosen = choose(all);
  const size_t most = rules_.max_workers > 0 ? static_cast<size_t>(rules_.max_workers) : all.size();
  const bool apart = chosen.size() < std::min(all.size(), most);
  if (apart && now - std::max(forming_since_, arrival_) < kMesh) {
    awaited_ = "connections among " + names_of(all);
    return;
  }
  if (enough(chosen, now)) {
    propose(chosen, now);
  } else {
    await_more(chosen);
  }
}

bool Assembly::enough(const std::vector<int>& chosen, double now) {
  Group before;
  bool whole = false;
  for (const int member : chosen) {
    const MemberStatus status = status_of(member);
    whole = whole || status.whole;
    if (status.group.number > before.number) before = status.group;
  }
  if (!whole) return false;
  if (before.number == 0) return enough_to_start(chosen, now);
  if (rules_.min_workers > 0) return static_cast<int>(chosen.size()) >= rules_.min_workers;
  return enough_to_go_on(before, chosen);
}

bool Assembly::enough_to_start(const std::vector<int>& chosen, double now) const {
  int wanted = rules_.expected > 0 ? rules_.expected : rules_.members;
  if (rules_.max_workers > 0) wanted = std::min(wanted, rules_.max_workers);
  const int here = static_cast<int>(chosen.size());
  if (here >= wanted) return true;
  if (now - start_ < rules_.start_wait) return false;
  if (rules_.min_workers > 0) return here >= rules_.min_workers;
  const auto dead = std::count_if(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.dead; });
  const int of = std::min(wanted, rules_.members - static_cast<int>(dead));
  return 2 * here > of || (2 * here == of && chosen.front() == 0);
}

bool Assembly::enough_to_go_on(const Group& before, const std::vector<int>& chosen) const {
  size_t of = 0;
  size_t here = 0;
  bool lowest = false;
  for (const Seat& seat : before.seats) {
    if (confirmed_dead(seat)) continue;
    const bool takes_part = contains(chosen, seat.member) && alive(seat);
    if (of == 0) lowest = takes_part;
    ++of;
    if (takes_part) ++here;
  }
  return 2 * here > of || (2 * here == of && lowest);
}

void Assembly::await_more(const std::vector<int>& chosen) {
  std::string missing;
  for (int member = 0; member < rules_.members; ++member) {
    if (member == rules_.me || contains(chosen, member)) continue;
    const Peer& peer = at(member);
    missing += fmt::format("{}{} ({})", missing.empty() ? "" : ", ", name(member),
                           peer.here ? "it is getting ready" : peer.why);
  }
  const std::string enough = rules_.min_workers > 0 ? fmt::format("{} members are needed", rules_.min_workers)
                                                    : std::string("more than half are needed");
  awaited_ = fmt::format("{}; {}, {} here", missing, enough,
                         chosen.size() == 1 ? names_of(chosen) + " is" : names_of(chosen) + " are");
}

void Assembly::propose(const std::vector<int>& chosen, double now) {
  Proposal proposal;
  proposal.number = std::max({seen_, left_, group_.number}) + 1;
  for (const int member : chosen) proposal.seats.push_back({member, status_of(member).incarnation});
  note_seen(proposal.number);
  outstanding_ = Outstanding{proposal, now, {}};
  promise_ = Promise{proposal, rules_.me, now};
  for (const int member : chosen) {
    if (member != rules_.me) send(member, proposal);
  }
}

bool Assembly::fits(const std::vector<Seat>& seats) const {
  for (size_t i = 0; i < seats.size(); ++i) {
    if (seats[i].member < 0 || seats[i].member >= rules_.members) return false;
    if (i > 0 && seats[i].member <= seats[i - 1].member) return false;
  }
  return std::find(seats.begin(), seats.end(), Seat{rules_.me, rules_.incarnation}) != seats.end();
}

void Assembly::take_proposal(int peer, const Proposal& proposal, double now) {
  note_seen(proposal.number);
  const bool renews = promise_ && promise_->proposer == peer && proposal.number > promise_->proposal.number;
  const bool free = !promise_ || renews;
  const bool takes =
      phase_ == MemberPhase::forming && failure_.empty() && free && proposal.number > left_ && fits(proposal.seats) &&
      std::all_of(proposal.seats.begin(), proposal.seats.end(), [this](const Seat& seat) { return alive(seat); });
  if (!takes) {
    send(peer, status());
    send(peer, Refusal{proposal.number});
    return;
  }
  if (promise_) left_ = std::max(left_, promise_->proposal.number);
  promise_ = Promise{proposal, peer, now};
}

/// Warns about a long wait from time to time, and fails after the patience.
void Assembly::warn_or_give_up(double now) {
  if (phase_ != MemberPhase::forming || promise_ || !failure_.empty()) return;
  const double waited = now - forming_since_;
  if (waited > rules_.patience) {
    return fail(fmt::format("gave up after {:.0f} s of waiting for {}", rules_.patience, awaited_), false);
  }
  if (waited < kWorthALine || waited < 2 * warned_ || awaited_.empty()) return;
  warned_ = waited;
  log("warning", fmt::format("waited {:.0f} s so far for {}", waited, awaited_));
}

}  // namespace lockstep::allreduce::elastic
