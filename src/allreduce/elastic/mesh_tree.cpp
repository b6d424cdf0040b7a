// The tree of a large cluster: finding a parent, and the connections to neighbours.
#include "allreduce/elastic/mesh_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "allreduce/elastic/relay_messages.h"
#include "lockstep/error.h"
#include "wire/frames.h"
#include "wire/refusal.h"

namespace lockstep::allreduce::elastic {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLookForParent{50};
constexpr milliseconds kLookForBetter{500};
constexpr milliseconds kToHangUp{1000};  ///< time for a neighbour to read what was sent

PeerLink::Outgoing framed(const RelayFrame& frame) { return {header(kind_of(frame)), encode(frame)}; }

}  // namespace

double Mesh::now() { return std::chrono::duration<double>(wire::Clock::now().time_since_epoch()).count(); }

// News and frames of the relay.

void Mesh::send_frames() {
  for (const int peer : relay_.pending()) {
    const auto found = links_.find(peer);
    if (found != links_.end() && found->second != nullptr) {
      found->second->send_from_source();
    } else {
      relay_.take_frames(peer);
    }
  }
}

void Mesh::hand_over(int peer) {
  const auto found = links_.find(peer);
  for (const RelayFrame& frame : relay_.take_frames(peer)) {
    if (found != links_.end() && found->second != nullptr) found->second->send(framed(frame));
  }
}

void Mesh::pass_on(const News& news) {
  struct Pass {
    Mesh& mesh;
    int from;
    void operator()(const Arrived& arrived) const { mesh.owner_.on_connected(from, arrived.status); }
    void operator()(const Told& told) const { mesh.owner_.on_message(from, told.status); }
    void operator()(const Received& received) const {
      const auto members = static_cast<int>(mesh.members_.size());
      mesh.owner_.on_message(from, decode(static_cast<Kind>(received.kind), received.content, members));
    }
    void operator()(const Lost& lost) const { mesh.owner_.on_lost(from, lost.why); }
    void operator()(const Dead&) const { mesh.owner_.on_confirmed_dead(from); }
  };
  std::visit(Pass{*this, news.member}, news.what);
}

// The parent.

void Mesh::seek_parent() {
  while (!stopping_ && !parting_) {
    std::optional<int> next;
    {
      const base::MutexLock lock(mutex_);
      next = relay_.next_try(now());
    }
    next ? try_parent(*next) : rest();
  }
}

/// Waits for the time of the next attempt, or until the parent is gone.
void Mesh::rest() {
  const base::MutexLock lock(mutex_);
  const int parent = relay_.parent();
  const auto until = wire::Clock::now() + (parent >= 0 ? kLookForBetter : kLookForParent);
  while (!stopping_ && !parting_ && relay_.parent() == parent && wire::Clock::now() < until) {
    changed_.wait_for(mutex_, until - wire::Clock::now());
  }
}

void Mesh::try_parent(int peer) {
  uint64_t incarnation = 0;
  std::string why = "connection refused: no process listens there";
  std::unique_ptr<transport::Stream> stream;
  const bool refuses = transport::refuses(options_.spec.address(members_[static_cast<size_t>(peer)]));
  if (!refuses) stream = greet(peer, incarnation, why);
  if (stream) return change_parent(peer, incarnation, std::move(stream));
  with_relay([&](Relay& relay) {
    relay.tried(peer, now());
    if (refuses) relay.confirm_dead(peer);
  });
  if (!stopping_) owner_.on_unreachable(peer, why);
}

void Mesh::change_parent(int peer, uint64_t incarnation, std::unique_ptr<transport::Stream> stream) {
  leave_parent();
  if (parent_thread_.joinable()) parent_thread_.join();
  if (stopping_ || parting_) return;
  {
    const base::MutexLock lock(mutex_);
    left_ = -1;
    parent_ended_ = false;
  }
  parent_thread_ = std::thread([this, peer, incarnation, taken = std::move(stream)] {
    run_thread([&] { run_tree_link(peer, incarnation, *taken); });
    const base::MutexLock lock(mutex_);
    parent_ended_ = true;
    changed_.notify_all();
  });
  const base::MutexLock lock(mutex_);
  while (!parent_ended_ && relay_.parent() != peer) changed_.wait(mutex_);
}

/// Cuts itself off, asks the parent for what is still on the way, and hangs up.
void Mesh::leave_parent() {
  int old = -1;
  {
    const base::MutexLock lock(mutex_);
    old = left_ = relay_.parent();
  }
  if (old < 0) return;
  with_relay([this, old](Relay& relay) {
    mutex_.assert_held();
    hand_over(old);
    relay.link_down(old, "", now());
  });
  const base::MutexLock lock(mutex_);
  const auto gone = [this, old] {
    mutex_.assert_held();
    return stopping_ || !links_.contains(old);
  };
  if (!gone() && links_[old] != nullptr) links_[old]->send(framed(Leaving{false}));
  const auto until = wire::Clock::now() + kToHangUp;
  while (!gone() && wire::Clock::now() < until) changed_.wait_for(mutex_, until - wire::Clock::now());
  while (!gone()) {
    if (links_[old] != nullptr) links_[old]->cancel("it did not hang up");
    changed_.wait(mutex_);
  }
}

// Neighbours.

std::string Mesh::why_full(int peer) {
  if (!relays_) return {};
  if (parting_) return options_.task.str() + " ends";
  std::string why;
  with_relay([&](Relay& relay) {
    mutex_.assert_held();
    const Relay::Room room = relay.room_for(peer);
    if (!room.granted) why = fmt::format("{} has {} neighbours, its most", options_.task.str(), room.neighbours);
    if (!room.granted || room.drop < 0) return;
    dropped_.insert(room.drop);
    hand_over(room.drop);
    if (links_[room.drop] != nullptr) links_[room.drop]->send(framed(Leaving{false}));
    relay.link_down(room.drop, "", now());
  });
  return why;
}

void Mesh::run_tree_link(int peer, uint64_t incarnation, transport::Stream& stream) {
  const PeerLink* self = nullptr;
  const auto frames = [this, peer, &self] {
    std::vector<PeerLink::Outgoing> all;
    const base::MutexLock lock(mutex_);
    const auto found = links_.find(peer);
    if (found == links_.end() || found->second != self) return all;  // a newer connection has taken its place
    for (const RelayFrame& frame : relay_.take_frames(peer)) all.push_back(framed(frame));
    return all;
  };
  PeerLink link(
      stream,
      [] {
        return PeerLink::Outgoing{header(Kind::beat), {}};
      },
      frames);
  self = &link;
  enter(peer, link);
  with_relay([peer](Relay& relay) { relay.link_up(peer, now()); });
  const std::string why = read_frames(peer, incarnation, stream, link);
  leave(peer);
  end_tree_link(peer, why);
}

void Mesh::end_tree_link(int peer, const std::string& why) {
  with_relay([&](Relay& relay) { relay.link_down(peer, why, now()); });
  const base::MutexLock lock(mutex_);
  links_.erase(peer);
  dropped_.erase(peer);
  // A parent's neighbours look for its other children.
  for (int member = 0; member < static_cast<int>(members_.size()) && !why.empty(); ++member) {
    if ((member == peer || peer > me_) && relay_.misses(member)) lost_[member] = 0;
  }
  changed_.notify_all();
}

/// Returns why the connection has ended; empty: one of the two has found a better neighbour.
std::string Mesh::read_frames(int peer, uint64_t incarnation, transport::Stream& stream, PeerLink& link) try {
  const auto check = [&](const Sightings& sightings) {
    for (const Sighting& sighting : sightings.all) {
      if (sighting.member == peer && sighting.path.size() == 1 && sighting.known->status.incarnation != incarnation)
        throw DataError("the status comes from another process of this member");
    }
  };
  for (;;) {
    const base::Result<transport::Frame> frame = stream.read();
    if (stopping_) return "this process ends";
    if (!frame) {
      const base::MutexLock lock(mutex_);
      if (left_ == peer || dropped_.contains(peer)) return {};
      const std::string given_up = link.why();
      return given_up.empty() ? "connection closed" : given_up;
    }
    link.heard();
    if (kind_of(frame.value()) == Kind::beat) continue;
    RelayFrame read = decode_relayed(kind_of(frame.value()), wire::message_of(frame.value()), peer,
                                     static_cast<int>(members_.size()));
    if (const auto* const leaving = std::get_if<Leaving>(&read)) {
      if (leaving->ends) return "connection closed";
      if (peer > me_) let_go(peer, stream, link);
      return {};
    }
    if (const auto* const sightings = std::get_if<Sightings>(&read)) check(*sightings);
    with_relay([&](Relay& relay) { relay.take(peer, std::move(read), now()); });
  }
} catch (const Error& error) {
  owner_.on_refused(fmt::format("{} sent an invalid message: {}", name(peer), error.what()), false);
  return std::string("it sent an invalid message: ") + error.what();
}

/// Sends a child that has found another parent what is still on the way to it.
void Mesh::let_go(int peer, transport::Stream& stream, PeerLink& link) {
  with_relay([this, peer](Relay& relay) {
    mutex_.assert_held();
    hand_over(peer);
    relay.link_down(peer, "", now());
  });
  link.send(framed(Leaving{false}));
  while (!stopping_ && stream.read()) {
  }
}

void Mesh::part() {
  const base::MutexLock lock(mutex_);
  parting_ = true;
  for (const auto& [peer, link] : links_) {
    hand_over(peer);
    if (link != nullptr) link->send(framed(Leaving{true}));
  }
  const auto until = wire::Clock::now() + kToHangUp;
  while (!links_.empty() && wire::Clock::now() < until) changed_.wait_for(mutex_, until - wire::Clock::now());
}

}  // namespace lockstep::allreduce::elastic
