// How the next group is proposed and decided.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "allreduce/elastic/assembly.h"

namespace lockstep::allreduce::elastic {
namespace {

constexpr double kMesh = 3;       ///< seconds for connections that two others still lack
constexpr double kProposal = 10;  ///< seconds for all to accept
constexpr double kPromise = 20;   ///< seconds for a decision
constexpr double kRetry = 0.05;   ///< seconds after a refusal, for the lowest
constexpr double kLongestRetry = 2;
constexpr double kWorthALine = 5;  ///< seconds of waiting; then each time twice as long

bool contains(const std::vector<int>& members, int member) {
  return std::find(members.begin(), members.end(), member) != members.end();
}

/// Of a process and a number that it uses once.
uint64_t unique_id(uint64_t incarnation, uint64_t number) {
  uint64_t mixed = incarnation + number * 0x9E3779B97F4A7C15ULL;
  for (const unsigned shift : {30U, 27U}) mixed = (mixed ^ (mixed >> shift)) * 0xBF58476D1CE4E5B9ULL;
  return std::max<uint64_t>(mixed ^ (mixed >> 31U), 1);
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

std::vector<int> Assembly::candidates() const {
  std::vector<int> found;
  for (int member = 0; member < rules_.members; ++member) {
    const bool forms = at(member).here && at(member).status.phase == Phase::forming;
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
    const Status status = status_of(member);
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

/// Whether others have to act first: those who are still in a group, or are the ones to propose.
bool Assembly::must_wait_for_others(double now) {
  for (int member = 0; member < rules_.members; ++member) {
    const Peer& peer = at(member);
    if (!peer.here) continue;
    const Status& status = peer.status;
    if (status.phase == Phase::ended || status.knows_end) {
      fail("training is over", true);
      return true;
    }
    if (status.phase == Phase::closing) {
      // Should all die who are at it, it is needed.
      awaited_ = fmt::format("{} and its group to write down what they trained", name(member));
      forming_since_ = now;
      return true;
    }
    if (status.phase != Phase::running && status.phase != Phase::connecting) continue;
    const bool mine = status.group.id == group_.id && group_.number > 0;
    if (mine) {
      awaited_ = fmt::format("{} to leave group {}: it is slow, not dead", name(member), group_.number);
    } else {
      awaited_ = fmt::format("{} and its group to let {} in", name(member), short_name(rules_.me));
      const bool full = rules_.max_workers > 0 && static_cast<int>(status.group.seats.size()) >= rules_.max_workers;
      if (full) forming_since_ = now;  // it waits outside for as long as that takes
    }
    return true;
  }
  const std::vector<int> all = candidates();
  const auto live = std::find_if(all.begin(), all.end(), [this](int member) { return status_of(member).live; });
  const int proposer = live != all.end() ? *live : all.front();
  if (proposer == rules_.me) return false;
  awaited_ = fmt::format("{} to propose a group", name(proposer));
  return true;
}

void Assembly::consider(double now) {
  if (promise_ || !failure_.empty() || must_wait_for_others(now) || now < next_try_) return;
  const std::vector<int> all = candidates();
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
    const Status status = status_of(member);
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
  const auto dead = std::count_if(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.certain; });
  const int of = std::min(wanted, rules_.members - static_cast<int>(dead));
  return 2 * here > of || (2 * here == of && chosen.front() == 0);
}

bool Assembly::enough_to_go_on(const Group& before, const std::vector<int>& chosen) const {
  size_t of = 0;
  size_t here = 0;
  bool lowest = false;
  for (const Seat& seat : before.seats) {
    if (certainly_dead(seat)) continue;
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
      phase_ == Phase::forming && failure_.empty() && free && proposal.number > left_ && fits(proposal.seats) &&
      std::all_of(proposal.seats.begin(), proposal.seats.end(), [this](const Seat& seat) { return alive(seat); });
  if (!takes) {
    send(peer, status());
    send(peer, Refusal{proposal.number});
    return;
  }
  if (promise_) left_ = std::max(left_, promise_->proposal.number);
  promise_ = Promise{proposal, peer, now};
}

std::optional<Preparation> Assembly::take_preparation() {
  if (phase_ != Phase::forming || !promise_ || promise_->asked) return std::nullopt;
  promise_->asked = true;
  const std::vector<Seat>& seats = promise_->proposal.seats;
  const auto mine = std::find(seats.begin(), seats.end(), Seat{rules_.me, rules_.incarnation});
  return Preparation{promise_->proposal.number, static_cast<int>(mine - seats.begin()), static_cast<int>(seats.size())};
}

void Assembly::prepared(uint64_t number, std::string address, double now) {
  if (phase_ != Phase::forming || !promise_ || promise_->proposal.number != number) return;
  const Acceptance acceptance{number, std::move(address), standing_, standing_.live ? group_.id : 0};
  if (promise_->proposer == rules_.me) {
    take_acceptance(rules_.me, acceptance, now);
  } else {
    send(promise_->proposer, acceptance);
  }
}

void Assembly::take_acceptance(int peer, const Acceptance& acceptance, double now) {
  if (!outstanding_ || outstanding_->proposal.number != acceptance.number) return;
  const std::vector<Seat>& seats = outstanding_->proposal.seats;
  const bool asked = std::any_of(seats.begin(), seats.end(), [&](const Seat& seat) { return seat.member == peer; });
  if (!asked) return;
  outstanding_->accepted[peer] = acceptance;
  if (outstanding_->accepted.size() == seats.size()) decide(now);
}

Decision Assembly::make_decision() const {
  Decision decision;
  decision.group.number = outstanding_->proposal.number;
  decision.group.id = unique_id(rules_.incarnation, decision.group.number);
  decision.group.seats = outstanding_->proposal.seats;
  const Acceptance* source = nullptr;
  const auto better = [](const Standing& a, const Standing& b) {
    return std::make_tuple(a.whole, a.live, a.step) > std::make_tuple(b.whole, b.live, b.step);
  };
  int rank = 0;
  for (const auto& [member, acceptance] : outstanding_->accepted) {
    decision.addresses.push_back(acceptance.address);
    if (source == nullptr || better(acceptance.standing, source->standing)) {
      source = &acceptance;
      decision.source = rank;
    }
    ++rank;
  }
  decision.standing = source->standing;
  const auto same = [&](const auto& entry) {
    const Acceptance& a = entry.second;
    return a.standing.whole && a.standing.live && a.standing.step == source->standing.step && a.lineage != 0 &&
           a.lineage == source->lineage;
  };
  decision.transfer = !std::all_of(outstanding_->accepted.begin(), outstanding_->accepted.end(), same);
  return decision;
}

void Assembly::decide(double now) {
  const Decision decision = make_decision();
  if (!decision.standing.whole) return drop_promise();
  outstanding_.reset();
  for (const Seat& seat : decision.group.seats) {
    if (seat.member != rules_.me) send(seat.member, decision);
  }
  take_decision_of(rules_.me, decision, now);
}

void Assembly::take_decision_of(int peer, const Decision& decision, double now) {
  const bool awaited = phase_ == Phase::forming && promise_ && promise_->proposer == peer && promise_->asked &&
                       promise_->proposal.number == decision.group.number &&
                       promise_->proposal.seats == decision.group.seats;
  const auto size = static_cast<int>(decision.group.seats.size());
  const bool fine = awaited && decision.group.id != 0 && decision.source >= 0 && decision.source < size &&
                    static_cast<int>(decision.addresses.size()) == size;
  if (!fine) return;
  coming_ = decision;
  coming_taken_ = false;
  promise_.reset();
  outstanding_.reset();
  phase_ = Phase::connecting;
  tell();
  react(now);
}

void Assembly::take_refusal(int peer, const Refusal& refusal, double now) {
  if (!promise_ || promise_->proposal.number != refusal.number) return;
  if (promise_->proposer != peer && promise_->proposer != rules_.me) return;
  if (promise_->proposer == rules_.me) next_try_ = now + kRetry * (1 + rules_.me);
  drop_promise();
  consider(now);
}

/// Never again a group of that number.
void Assembly::drop_promise() {
  left_ = std::max(left_, promise_->proposal.number);
  if (outstanding_) {
    for (const Seat& seat : outstanding_->proposal.seats) {
      if (seat.member != rules_.me && alive(seat)) send(seat.member, Refusal{promise_->proposal.number});
    }
  }
  outstanding_.reset();
  promise_.reset();
  tell();
}

void Assembly::review_promise(double now) {
  if (!promise_) return;
  const uint64_t number = promise_->proposal.number;
  const std::vector<Seat>& seats = promise_->proposal.seats;
  const bool gone = std::any_of(seats.begin(), seats.end(), [&](const Seat& seat) {
    return !alive(seat) || (seat.member != rules_.me && at(seat.member).status.left >= number);
  });
  const bool late = now - promise_->since > (outstanding_ ? kProposal : kPromise);
  if (late) {
    std::vector<int> silent;
    for (const Seat& seat : seats) {
      if (outstanding_ && !outstanding_->accepted.contains(seat.member)) silent.push_back(seat.member);
    }
    say("warning",
        fmt::format("group {}: no {} within {:.0f} s; trying again", number,
                    silent.empty() ? "decision of " + name(promise_->proposer) : "answer of " + names_of(silent),
                    now - promise_->since));
  }
  if (gone || late) drop_promise();
}

std::optional<Decision> Assembly::take_decision() {
  if (phase_ != Phase::connecting || coming_taken_) return std::nullopt;
  coming_taken_ = true;
  return coming_;
}

std::string Assembly::why_give_up() const {
  if (!coming_) return {};
  for (const Seat& seat : coming_->group.seats) {
    if (!alive(seat)) return fmt::format("{}: {}", name(seat.member), at(seat.member).why);
    if (seat.member != rules_.me && at(seat.member).status.left >= coming_->group.number) {
      return fmt::format("{} has given group {} up", name(seat.member), coming_->group.number);
    }
  }
  return {};
}

void Assembly::connected(double now) {
  const Group before = std::exchange(group_, coming_->group);
  const Standing standing = coming_->standing;
  announced_.clear();
  phase_ = Phase::running;
  dissolved_ = false;
  failures_ = 0;
  broken_.clear();
  for (Peer& peer : peers_) peer.left_since = -1;
  standing_.step = standing.step;
  announce(before);
  coming_.reset();
  tell();
  react(now);
}

void Assembly::not_connected(const std::string& why, double now) {
  left_ = std::max(left_, coming_->group.number);
  say("warning", fmt::format("group {} was not connected: {}", coming_->group.number, why));
  coming_.reset();
  phase_ = Phase::forming;
  ++failures_;
  next_try_ = now + std::min(kRetry * (1 << std::min(failures_, 10)), kLongestRetry);
  tell();
  react(now);
}

/// The wait for a group: a line for people from time to time, and an end to it.
void Assembly::complain(double now) {
  if (phase_ != Phase::forming || promise_ || !failure_.empty()) return;
  const double waited = now - forming_since_;
  if (waited > rules_.patience) {
    return fail(fmt::format("gave up after {:.0f} s of waiting for {}", rules_.patience, awaited_), false);
  }
  if (waited < kWorthALine || waited < 2 * complained_ || awaited_.empty()) return;
  complained_ = waited;
  say("warning", fmt::format("has waited {:.0f} s for {}", waited, awaited_));
}

}  // namespace lockstep::allreduce::elastic
