// Chooses the members of the next group: the proposal.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "allreduce/elastic/assembly.h"

namespace lockstep::allreduce::elastic {
namespace {

constexpr double kMesh = 3;         ///< seconds to wait for connections missing between two others
constexpr double kTurn = 10;        ///< seconds after which the next member may propose a group
constexpr double kWorthALine = 5;   ///< seconds of waiting before a warning; doubled each time
constexpr double kOthersLine = 60;  ///< the same for members of a large cluster that do not propose the group

}  // namespace

bool Assembly::in_group(const Group& group, const Seat& seat) {
  const Seat* const there = authority::seat_of(group, seat.member);
  return there != nullptr && *there == seat;
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
  const auto here = [this](int member) { return member == rules_.me || at(member).here; };
  if (rules_.relayed) return here(a) && here(b);
  const auto reaches = [this](int from, int to) {
    if (from == rules_.me) return at(to).here;
    const std::vector<int>& reach = at(from).status.reach;
    return std::binary_search(reach.begin(), reach.end(), to);
  };
  return a == b || (reaches(a, b) && reaches(b, a));
}

std::vector<int> Assembly::take_reachable(const std::vector<int>& from) const {
  std::vector<int> chosen;
  for (const int member : from) {
    if (rules_.max_workers > 0 && static_cast<int>(chosen.size()) >= rules_.max_workers) break;
    const bool fits = std::all_of(chosen.begin(), chosen.end(), [&](int c) { return reach_each_other(member, c); });
    if (fits) chosen.push_back(member);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

std::vector<int> Assembly::choose(std::vector<int> from, bool by_reach) const {
  using Key = std::tuple<bool, int64_t, uint64_t, bool, bool, int>;
  std::vector<Key> keys;
  for (const int member : from) {
    const MemberStatus status = status_of(member);
    const bool before = in_group(group_, {member, status.incarnation});
    int64_t reached = 0;
    if (by_reach)
      reached = std::count_if(from.begin(), from.end(), [&](int other) { return reach_each_other(member, other); });
    keys.emplace_back(member != rules_.me, -reached, ~status.step, !status.live, !before, member);
  }
  std::sort(keys.begin(), keys.end());
  std::transform(keys.begin(), keys.end(), from.begin(), [](const Key& key) { return std::get<int>(key); });
  return take_reachable(from);
}

/// True if others must act first: members that are still in a group.
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
  return false;
}

bool Assembly::may_propose(double now) {
  std::vector<int> order = candidates(now);
  std::stable_partition(order.begin(), order.end(),
                        [this](int member) { return member == rules_.me ? standing_.live : at(member).status.live; });
  if (order.front() == rules_.me) return true;
  // The first one may not reach enough others, so the next ones get their turn.
  const auto mine = std::find(order.begin(), order.end(), rules_.me) - order.begin();
  if (now - std::max({forming_since_, arrival_, yielded_}) > kTurn * static_cast<double>(mine)) return true;
  awaited_ = fmt::format("{} to propose a group", name(order.front()));
  return false;
}

void Assembly::propose_if_ready(double now) {
  if (promise_ || !failure_.empty() || must_wait_for_others(now) || now < next_try_ || !may_propose(now)) return;
  const std::vector<int> all = candidates(now);
  std::vector<int> chosen = choose(all);
  const size_t most = rules_.max_workers > 0 ? static_cast<size_t>(rules_.max_workers) : all.size();
  const bool apart = chosen.size() < std::min(all.size(), most);
  if (apart && now - std::max(forming_since_, arrival_) < kMesh) {
    awaited_ = "connections among " + names_of(all);
    return;
  }
  // In a large cluster many would ask before all are here.
  if (rules_.relayed && !complete(chosen, now)) return await_more(chosen);
  if (!knows_register(now)) return;
  if (apart && !enough(chosen, now)) chosen = choose(all, true);
  if (enough(chosen, now)) {
    propose(chosen, now);
  } else {
    await_more(chosen);
  }
}

void Assembly::propose(const std::vector<int>& chosen, double now) {
  Proposal proposal;
  proposal.number = std::max({seen_, left_, group_.number, register_.group.number}) + 1;
  std::vector<Seat> seats;
  for (const int member : chosen) seats.push_back({member, status_of(member).incarnation});
  proposal.seats = std::move(seats);
  note_seen(proposal.number);
  outstanding_ = Outstanding{proposal, now, {}};
  promise_ = Promise{proposal, rules_.me, now};
  for (const int member : chosen) {
    if (member != rules_.me) send(member, proposal);
  }
}

bool Assembly::fits(const Seats& seats) const {
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
  // In a large cluster one line is enough, at first.
  const bool leads = !rules_.relayed || candidates(now).front() == rules_.me;
  if (waited < (leads ? kWorthALine : kOthersLine) || waited < 2 * warned_ || awaited_.empty()) return;
  warned_ = waited;
  log("warning", fmt::format("waited {:.0f} s so far for {}", waited, awaited_));
}

}  // namespace lockstep::allreduce::elastic
