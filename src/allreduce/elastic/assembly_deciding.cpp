// From a proposal to a group: promises, the decision, connecting.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "allreduce/elastic/assembly.h"

namespace lockstep::allreduce::elastic {
namespace {

constexpr double kProposal = 10;  ///< seconds for all to accept
constexpr double kPromise = 20;   ///< seconds for a decision
constexpr double kRetry = 0.05;   ///< seconds after a refusal, at least
constexpr double kLongestRetry = 2;
constexpr double kBarred = 30;  ///< seconds for which a new member is excluded; doubled each time

/// Makes an id from a process's incarnation and a number that it uses once.
uint64_t unique_id(uint64_t incarnation, uint64_t number) {
  uint64_t mixed = incarnation + number * 0x9E3779B97F4A7C15ULL;
  for (const unsigned shift : {30U, 27U}) mixed = (mixed ^ (mixed >> shift)) * 0xBF58476D1CE4E5B9ULL;
  return std::max<uint64_t>(mixed ^ (mixed >> 31U), 1);
}

}  // namespace

std::optional<Preparation> Assembly::take_preparation() {
  if (phase_ != MemberPhase::forming || !promise_ || promise_->asked) return std::nullopt;
  promise_->asked = true;
  const Seats& seats = promise_->proposal.seats;
  const auto mine = std::find(seats.begin(), seats.end(), Seat{rules_.me, rules_.incarnation});
  return Preparation{promise_->proposal.number, static_cast<int>(mine - seats.begin()), static_cast<int>(seats.size())};
}

void Assembly::prepared(uint64_t number, std::string address, double now) {
  if (phase_ != MemberPhase::forming || !promise_ || promise_->proposal.number != number) return;
  const Acceptance acceptance{number, std::move(address), standing_,
                              standing_.live && !standing_.earlier ? group_.id : 0};
  if (promise_->proposer == rules_.me) {
    take_acceptance(rules_.me, acceptance, now);
  } else {
    send(promise_->proposer, acceptance);
  }
}

void Assembly::take_acceptance(int peer, const Acceptance& acceptance, double now) {
  if (!outstanding_ || outstanding_->proposal.number != acceptance.number) return;
  const Seats& seats = outstanding_->proposal.seats;
  const bool asked = std::any_of(seats.begin(), seats.end(), [&](const Seat& seat) { return seat.member == peer; });
  if (!asked) return;
  outstanding_->accepted[peer] = acceptance;
  if (outstanding_->accepted.size() == seats.size()) decide(now);
}

/// Returns the rank whose state all go on from. Of equal steps, one of a later group counts more: all of that group may
/// have made it, but the earlier group broke. Members that restarted may have used a number again; then the state of
/// more members counts.
int Assembly::best_source() const {
  using Worth = std::tuple<bool, uint64_t, bool, uint64_t, int64_t>;
  const auto& accepted = outstanding_->accepted;
  const auto holders_of = [&](const Acceptance& a) {
    return std::count_if(accepted.begin(), accepted.end(), [&](const auto& other) {
      return a.lineage != 0 && other.second.lineage == a.lineage && other.second.standing.step == a.standing.step;
    });
  };
  std::optional<Worth> best;
  int source = 0;
  int rank = 0;
  for (const auto& [member, acceptance] : accepted) {
    const Standing& has = acceptance.standing;
    const bool ranks = has.live && !rules_.allow_split;  // with parts apart, numbers of groups tell nothing
    const uint64_t group = ranks ? status_of(member).group.number : 0;
    const Worth worth{has.whole, has.step, has.live, group, ranks ? holders_of(acceptance) : 0};
    if (!best || worth > *best) {
      best = worth;
      source = rank;
    }
    ++rank;
  }
  return source;
}

Decision Assembly::make_decision() const {
  const auto& accepted = outstanding_->accepted;
  Decision decision;
  decision.group.number = outstanding_->proposal.number;
  decision.group.id = unique_id(rules_.incarnation, decision.group.number);
  decision.group.seats = outstanding_->proposal.seats;
  decision.source = best_source();
  const Acceptance& source = std::next(accepted.begin(), decision.source)->second;
  decision.standing = source.standing;
  const auto same = [&](const Acceptance& a) {
    return a.standing.whole && a.standing.live && a.standing.step == source.standing.step && a.lineage != 0 &&
           a.lineage == source.lineage;
  };
  // Before the first step all members have the initial state.
  const auto begins = [](const Standing& s) { return s.whole && !s.live && s.step == 0; };
  decision.transfer = false;
  int rank = 0;
  for (const auto& [member, acceptance] : accepted) {
    decision.addresses.push_back(acceptance.address);
    decision.transfer = decision.transfer || !same(acceptance);
    const bool holds = same(acceptance) || (begins(acceptance.standing) && begins(source.standing));
    if (holds) decision.holders.push_back(rank);
    ++rank;
  }
  return decision;
}

void Assembly::decide(double now) {
  outstanding_->decision = make_decision();
  if (!outstanding_->decision->standing.whole) return drop_promise();
  if (rules_.authority.empty()) return start_group(now);
  ask_to_start(now);
}

void Assembly::start_group(double now) {
  const Decision decision = std::move(*outstanding_->decision);
  outstanding_.reset();
  for (const Seat& seat : decision.group.seats) {
    if (seat.member != rules_.me) send(seat.member, decision);
  }
  take_decision_of(rules_.me, decision, now);
}

void Assembly::take_decision_of(int peer, const Decision& decision, double now) {
  const bool awaited = phase_ == MemberPhase::forming && promise_ && promise_->proposer == peer && promise_->asked &&
                       promise_->proposal.number == decision.group.number &&
                       promise_->proposal.seats == decision.group.seats;
  const auto size = static_cast<int>(decision.group.seats.size());
  const bool fine = awaited && decision.group.id != 0 && decision.source >= 0 && decision.source < size &&
                    static_cast<int>(decision.addresses.size()) == size &&
                    std::all_of(decision.holders.begin(), decision.holders.end(),
                                [size](int holder) { return holder >= 0 && holder < size; });
  if (!fine) return;
  decision_ = decision;
  decision_taken_ = false;
  promise_.reset();
  outstanding_.reset();
  phase_ = MemberPhase::connecting;
  broadcast_status();
  react(now);
}

void Assembly::take_refusal(int peer, const Refusal& refusal, double now) {
  if (!promise_ || promise_->proposal.number != refusal.number) return;
  if (promise_->proposer != peer && promise_->proposer != rules_.me) return;
  if (promise_->proposer == rules_.me) {
    next_try_ = now + kRetry * (1 + rules_.me);
    yielded_ = now;
  }
  drop_promise();
  propose_if_ready(now);
}

/// Gives up the promise, and never joins a group of that number.
void Assembly::drop_promise() {
  left_ = std::max(left_, promise_->proposal.number);
  if (outstanding_) {
    for (const Seat& seat : outstanding_->proposal.seats) {
      if (seat.member != rules_.me && alive(seat)) send(seat.member, Refusal{promise_->proposal.number});
    }
  }
  outstanding_.reset();
  promise_.reset();
  broadcast_status();
}

void Assembly::review_promise(double now) {
  if (!promise_) return;
  const uint64_t number = promise_->proposal.number;
  const Seats& seats = promise_->proposal.seats;
  const bool gone = std::any_of(seats.begin(), seats.end(), [&](const Seat& seat) {
    return !alive(seat) || (seat.member != rules_.me && at(seat.member).status.left >= number);
  });
  const bool late = now - promise_->since > (outstanding_ ? kProposal : kPromise);
  if (late) {
    std::vector<int> silent;
    for (const Seat& seat : seats) {
      if (outstanding_ && !outstanding_->accepted.contains(seat.member)) silent.push_back(seat.member);
    }
    std::string missing = silent.empty() ? "decision of " + name(promise_->proposer) : "answer of " + names_of(silent);
    if (outstanding_ && outstanding_->decision) missing = "answer of " + rules_.authority;
    log("warning",
        fmt::format("group {}: no {} within {:.0f} s; trying again", number, missing, now - promise_->since));
  }
  if (gone || late) return drop_promise();
  if (outstanding_ && outstanding_->decision) ask_to_start(now);
}

std::optional<Decision> Assembly::take_decision() {
  if (phase_ != MemberPhase::connecting || decision_taken_) return std::nullopt;
  decision_taken_ = true;
  return decision_;
}

std::string Assembly::why_give_up() const {
  if (!decision_) return {};
  for (const Seat& seat : decision_->group.seats) {
    if (!alive(seat)) return fmt::format("{}: {}", name(seat.member), at(seat.member).why);
    if (seat.member != rules_.me && at(seat.member).status.left >= decision_->group.number) {
      return fmt::format("{} has left group {} before it was connected", name(seat.member), decision_->group.number);
    }
  }
  return {};
}

void Assembly::connected(double now) {
  const Group before = std::exchange(group_, decision_->group);
  const auto rank = [this](int number) { return group_.seats[static_cast<size_t>(number)].member == rules_.me; };
  const std::vector<int>& holders = decision_->holders;
  const bool has = rank(decision_->source) || std::any_of(holders.begin(), holders.end(), rank);
  const Standing standing = decision_->standing;
  if (group_.seats.front().member == rules_.me) say_losses();
  unsaid_.clear();
  announced_.clear();
  phase_ = MemberPhase::running;
  failures_ = 0;
  broken_.clear();
  for (Peer& peer : peers_) peer.left_since = -1;
  standing_.step = standing.step;
  standing_.earlier = decision_->transfer && !has;  // until the state is here
  announce(before);
  decision_.reset();
  broadcast_status();
  react(now);
}

void Assembly::received() {
  if (!std::exchange(standing_.earlier, false)) return;
  broadcast_status();
}

void Assembly::not_connected(const std::string& why, double now) {
  left_ = std::max(left_, decision_->group.number);
  log("warning", fmt::format("group {} was not connected: {}", decision_->group.number, why));
  bar_newcomers(decision_->group, now);
  decision_.reset();
  phase_ = MemberPhase::forming;
  ++failures_;
  next_try_ = now + std::min(kRetry * (1 << std::min(failures_, 10)), kLongestRetry);
  broadcast_status();
  react(now);
}

void Assembly::bar_newcomers(const Group& group, double now) {
  const bool all_there =
      std::all_of(group.seats.begin(), group.seats.end(), [this](const Seat& s) { return alive(s); });
  const bool goes_on = std::any_of(group.seats.begin(), group.seats.end(), [this](const Seat& seat) {
    return in_group(group_, seat) || (seat.member != rules_.me && at(seat.member).status.group.number > 0);
  });
  if (!all_there || !goes_on) return;
  for (const Seat& seat : group.seats) {
    if (seat.member == rules_.me || at(seat.member).status.group.number > 0) continue;
    Peer& peer = at(seat.member);
    peer.barred_until = now + kBarred * (1 << std::min(peer.bars++, 5));
  }
}

}  // namespace lockstep::allreduce::elastic
