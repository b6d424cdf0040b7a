#include "allreduce/elastic/assembly.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::allreduce::elastic {
namespace {

constexpr size_t kNamed = 8;  ///< most names in a line

}  // namespace

Assembly::Assembly(AssemblyRules rules)
    : rules_(std::move(rules)), peers_(static_cast<size_t>(rules_.members)), seen_(rules_.latest) {}

std::string Assembly::name(int member) const {
  return short_name(member) + " at " + rules_.addresses[static_cast<size_t>(member)];
}

std::string Assembly::names_of(const std::vector<int>& members) const {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  size_t parts = 0;
  for (size_t i = 0; i < members.size() && parts < kNamed; ++parts) {
    size_t last = i;
    while (members.size() > kNamed && last + 1 < members.size() && members[last + 1] == members[last] + 1) ++last;
    if (last < i + 2) last = i;
    add(short_name(members[i]) + (last > i ? " to " + short_name(members[last]) : ""));
    i = last + 1;
    if (parts + 1 == kNamed && i < members.size()) add(fmt::format("{} more", members.size() - i));
  }
  return text;
}

MemberStatus Assembly::status() const {
  MemberStatus status;
  status.incarnation = rules_.incarnation;
  status.phase = phase_;
  status.whole = standing_.whole;
  status.earlier = standing_.earlier;
  status.live = standing_.live;
  status.step = standing_.step;
  status.seen = seen_;
  status.left = left_;
  status.knows_end = knows_end_;
  status.interrupted = interrupted_;
  status.group = group_;
  for (int member = 0; member < rules_.members && !rules_.relayed; ++member) {
    if (at(member).here) status.reach.push_back(member);
  }
  return status;
}

MemberStatus Assembly::status_of(int member) const { return member == rules_.me ? status() : at(member).status; }

bool Assembly::alive(const Seat& seat) const {
  if (seat.member == rules_.me) return seat.incarnation == rules_.incarnation;
  return at(seat.member).here && at(seat.member).status.incarnation == seat.incarnation;
}

bool Assembly::confirmed_dead(const Seat& seat) const {
  if (seat.member == rules_.me) return seat.incarnation != rules_.incarnation;
  const Peer& peer = at(seat.member);
  return peer.dead || (peer.was_here && peer.status.incarnation != seat.incarnation);
}

void Assembly::broadcast_status() { send(-1, status()); }

void Assembly::send(int to, Message message) {
  Send& added = sends_.emplace_back();
  added.to = to;
  added.message = std::move(message);
}

void Assembly::note_seen(uint64_t number) { seen_ = std::max(seen_, number); }

void Assembly::peer_connected(int member, const MemberStatus& status, double now) {
  Peer& peer = at(member);
  if (peer.status.incarnation != status.incarnation) peer.barred_until = peer.bars = 0;
  peer.here = peer.was_here = true;
  peer.dead = false;
  peer.left_since = -1;
  peer.why.clear();
  arrival_ = now;
  take_status(member, status, now);
  broadcast_status();
}

void Assembly::take_status(int member, const MemberStatus& status, double now) {
  at(member).status = status;
  note_seen(std::max(status.seen, status.group.number));
  const bool ended = ends_all(status);
  const bool concerns = ended || in_group(group_, {member, status.incarnation});
  const bool interrupted = status.interrupted && concerns && !interrupted_;
  if (interrupted && !ended) log("info", fmt::format("{} was interrupted: all members end", name(member)));
  if ((ended && !knows_end_) || interrupted) {
    knows_end_ = knows_end_ || ended;
    interrupted_ = interrupted_ || interrupted;
    broadcast_status();
  }
  react(now);
}

void Assembly::peer_lost(int member, const std::string& why, double now) {
  Peer& peer = at(member);
  if (!peer.here) return;
  peer.here = false;
  peer.lost_at = now;
  peer.why = why;
  const bool trains =
      phase_ == MemberPhase::forming || phase_ == MemberPhase::connecting || phase_ == MemberPhase::running;
  const bool expected = knows_end_ || interrupted_;  // connections close when all members end
  const bool missed = trains && !expected && in_group(group_, {member, peer.status.incarnation});
  if (missed) report_loss(member, fmt::format("{}: {}", name(member), why));
  react(now);
  broadcast_status();
}

/// In a large cluster only the first one that is left says who is lost.
void Assembly::report_loss(int member, const std::string& line) {
  unsaid_[member] = line;
  if (!rules_.relayed || leads_survivors()) say_losses();
}

void Assembly::say_losses() {
  for (const auto& [member, line] : std::exchange(unsaid_, {})) log("warning", line);
}

bool Assembly::leads_survivors() const {
  const auto first = std::find_if(group_.seats.begin(), group_.seats.end(), [this](const Seat& s) { return alive(s); });
  return first == group_.seats.end() || first->member == rules_.me;
}

void Assembly::peer_confirmed_dead(int member, double now) {
  Peer& peer = at(member);
  if (peer.here || peer.dead || !peer.was_here) return;
  peer.dead = true;
  react(now);
}

void Assembly::peer_unreachable(int member, const std::string& why) {
  if (!at(member).here) at(member).why = why;
}

void Assembly::receive(int peer, const Message& message, double now) {
  if (!at(peer).here) return;
  struct Take {
    Assembly& self;
    int peer;
    double now;
    void operator()(const MemberStatus& status) const { self.take_status(peer, status, now); }
    void operator()(const Proposal& proposal) const { self.take_proposal(peer, proposal, now); }
    void operator()(const Acceptance& acceptance) const { self.take_acceptance(peer, acceptance, now); }
    void operator()(const Refusal& refusal) const { self.take_refusal(peer, refusal, now); }
    void operator()(const Decision& decision) const { self.take_decision_of(peer, decision, now); }
  };
  std::visit(Take{*this, peer, now}, message);
}

void Assembly::react(double now) {
  if (phase_ == MemberPhase::forming) {
    review_promise(now);
    propose_if_ready(now);
  }
  if (phase_ == MemberPhase::running) {
    watch_group(now);
    look_for_newcomers(now);
  }
}

void Assembly::tick(double now) {
  ticked_ = now;
  if (!rules_.authority.empty() && now - check_since_ <= 2 && register_.asked_at < check_since_) ask({}, now);
  react(now);
  warn_or_give_up(now);
}

void Assembly::form(const Standing& standing, double now) {
  if (start_ < 0) start_ = now;
  standing_ = standing;
  phase_ = MemberPhase::forming;
  left_ = std::max(left_, group_.number);
  forming_since_ = now;
  warned_ = 0;
  failures_ = 0;
  awaited_.clear();
  broken_.clear();
  failure_.clear();
  wants_regroup_ = false;
  for (Peer& peer : peers_) peer.left_since = -1;
  if (knows_end_) fail("training is over", true);
  broadcast_status();
  react(now);
}

}  // namespace lockstep::allreduce::elastic
