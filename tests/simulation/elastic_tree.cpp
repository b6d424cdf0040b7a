#include "simulation/elastic_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lockstep::simulation {
namespace {

using allreduce::elastic::Leaving;
using allreduce::elastic::RelayFrame;

constexpr double kLookForParent = 0.05;
constexpr double kLookForBetter = 0.5;
constexpr double kToHangUp = 1;
constexpr double kTreeHeartbeat = 1;
constexpr double kTreeSilence = 5;
constexpr double kLongestWrite = 0.005;

}  // namespace

ElasticTree::ElasticTree(World& world, Process me, int members, uint64_t incarnation, Owner owner)
    : world_(world),
      me_(me),
      members_(members),
      incarnation_(incarnation),
      owner_(std::move(owner)),
      relay_(me, members) {}

void ElasticTree::send(int member, ElasticMessage message) {
  Neighbour& there = neighbours_.at(member);
  there.sent = now();
  const ElasticPacket packet = std::make_shared<const ElasticMessage>(std::move(message));
  world_.send(me_, there.link, packet, [&] { return describe(*packet); });
}

void ElasticTree::send_pending(int member) {
  for (RelayFrame& frame : relay_.take_frames(member)) {
    if (neighbours_.contains(member)) send(member, std::move(frame));
  }
}

void ElasticTree::flush() {
  for (const int member : relay_.pending()) {
    const auto found = neighbours_.find(member);
    if (found == neighbours_.end()) {
      relay_.take_frames(member);
    } else if (!std::exchange(found->second.writing, true)) {
      // A link's thread takes a while until it writes.
      world_.after(me_, world_.random().between(0.0001, kLongestWrite), [this, member, link = found->second.link] {
        const auto there = neighbours_.find(member);
        if (there == neighbours_.end() || there->second.link != link) return;
        there->second.writing = false;
        send_pending(member);
      });
    }
  }
  for (const allreduce::elastic::News& news : relay_.take_news()) owner_.tell(news);
}

// The parent.

void ElasticTree::seek_after(double seconds) {
  world_.after(me_, seconds, [this, look = ++looks_] {
    if (look == looks_) seek();
  });
}

void ElasticTree::seek() {
  if (attempt_) return;
  const std::optional<int> next = relay_.next_try(now());
  if (!next) return seek_after(relay_.parent() >= 0 ? kLookForBetter : kLookForParent);
  attempt_ = Attempt{*next, world_.connect(me_, *next), now(), false, {}};
}

void ElasticTree::fail_attempt(const std::string& why, bool refused) {
  const int member = std::exchange(attempt_, std::nullopt)->member;
  relay_.tried(member, now());
  if (refused) relay_.confirm_dead(member);
  flush();
  owner_.unreachable(member, why);
  seek();
}

void ElasticTree::leave_parent() {
  left_ = relay_.parent();
  left_at_ = now();
  if (left_ < 0) return;
  send_pending(left_);
  relay_.link_down(left_, "", now());
  flush();
  if (neighbours_.contains(left_)) send(left_, RelayFrame(Leaving{false}));
}

/// Uses the new parent once the old one has hung up.
void ElasticTree::move_if_free() {
  if (!attempt_ || !attempt_->welcome || (left_ >= 0 && neighbours_.contains(left_))) return;
  left_ = -1;
  const Attempt attempt = *std::exchange(attempt_, std::nullopt);
  enter(attempt.member, attempt.link);
  for (const ElasticPacket& packet : attempt.early) received(attempt.link, packet);
  seek_after(kLookForBetter);
}

// Neighbours.

void ElasticTree::enter(int member, Link link) {
  if (const auto found = neighbours_.find(member); found != neighbours_.end()) {
    world_.close(me_, found->second.link);
    end(member, "it connected again");
  }
  neighbours_[member] = {link, now(), now(), false, false};
  links_[link] = member;
  relay_.link_up(member, now());
  flush();
}

void ElasticTree::greeted(int member, Link link, uint64_t /*incarnation*/) {
  const allreduce::elastic::Relay::Room room = relay_.room_for(member);
  const ElasticPacket answer = room.granted ? std::make_shared<const ElasticMessage>(Greeting{incarnation_})
                                            : std::make_shared<const ElasticMessage>(Full{});
  if (room.drop >= 0) {
    neighbours_.at(room.drop).leaves = true;
    send_pending(room.drop);
    send(room.drop, RelayFrame(Leaving{false}));
    relay_.link_down(room.drop, "", now());
    flush();
  }
  world_.send(me_, link, answer, [&] { return describe(*answer); });
  if (room.granted) {
    enter(member, link);
  } else {
    world_.close(me_, link);
  }
}

void ElasticTree::end(int member, const std::string& why) {
  const auto found = neighbours_.find(member);
  links_.erase(found->second.link);
  neighbours_.erase(found);
  const bool parent = relay_.parent() == member;
  relay_.link_down(member, why, now());
  flush();
  // A parent's neighbours look for its other children.
  for (int other = 0; other < members_ && !why.empty(); ++other) {
    if ((other == member || member > me_) && relay_.misses(other)) owner_.probe(other);
  }
  if (parent) seek_after(0);
  move_if_free();
}

void ElasticTree::take(int member, const RelayFrame& frame) {
  Neighbour& from = neighbours_.at(member);
  from.heard = now();
  if (const auto* const leaving = std::get_if<Leaving>(&frame)) {
    if (leaving->ends || member < me_) {
      world_.close(me_, from.link);
      return end(member, leaving->ends ? "connection closed" : "");
    }
    from.leaves = true;
    send_pending(member);
    relay_.link_down(member, "", now());
    flush();
    return send(member, RelayFrame(Leaving{false}));
  }
  relay_.take(member, frame, now());
  flush();
}

// Events.

bool ElasticTree::connected(Link link) {
  if (!attempt_ || attempt_->link != link) return false;
  const ElasticPacket greeting = std::make_shared<const ElasticMessage>(Greeting{incarnation_});
  world_.send(me_, link, greeting, [&] { return describe(*greeting); });
  return true;
}

bool ElasticTree::received(Link link, const ElasticPacket& packet) {
  if (const auto found = links_.find(link); found != links_.end()) {
    neighbours_.at(found->second).heard = now();
    if (const auto* const frame = std::get_if<RelayFrame>(packet.get())) take(found->second, *frame);
    return true;
  }
  if (!attempt_ || attempt_->link != link) return false;
  if (attempt_->welcome) {
    attempt_->early.push_back(packet);
  } else if (std::holds_alternative<Greeting>(*packet)) {
    attempt_->welcome = true;
    leave_parent();
    move_if_free();
  } else {
    world_.close(me_, link);
    fail_attempt("it has no room", false);
  }
  return true;
}

bool ElasticTree::closed(Link link, const std::string& why) {
  if (const auto found = links_.find(link); found != links_.end()) {
    const int member = found->second;
    const bool asked = member == left_ || neighbours_.at(member).leaves;
    end(member, asked ? "" : "connection closed");
    return true;
  }
  if (!attempt_ || attempt_->link != link) return false;
  const bool refused = why == "connection refused";
  fail_attempt(refused ? "connection refused: no process listens there" : why, refused);
  return true;
}

void ElasticTree::watch(bool paused) {
  std::vector<int> silent;
  for (auto& [member, there] : neighbours_) {
    if (paused) there.heard = now();
    const bool kept = left_ == member && now() - left_at_ > kToHangUp;
    if (kept || now() - there.heard > kTreeSilence) {
      silent.push_back(member);
    } else if (now() - there.sent >= kTreeHeartbeat) {
      send(member, Beat{});
    }
  }
  for (const int member : silent) {
    if (!neighbours_.contains(member)) continue;
    world_.close(me_, neighbours_.at(member).link);
    end(member, left_ == member ? "" : fmt::format("no heartbeat for {:.1f} s", now() - neighbours_.at(member).heard));
  }
  if (!attempt_ || attempt_->welcome) return;
  if (paused) attempt_->since = now();
  if (now() - attempt_->since <= kTreeSilence) return;
  world_.close(me_, attempt_->link);
  fail_attempt("no greeting within 5 s", false);
}

}  // namespace lockstep::simulation
