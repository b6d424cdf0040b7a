#include "ps/peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "wire/liveness.h"

namespace lockstep::ps {
namespace {

/// Seconds that what a process has sent may be under way after its end.
constexpr double kUnderWay = 1;

constexpr double in_seconds(std::chrono::milliseconds time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

Peers::Entry* Peers::find(Id id) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [id](const Entry& e) { return e.id == id; });
  return found == entries_.end() ? nullptr : &*found;
}

const Peers::Entry* Peers::find(Id id) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [id](const Entry& e) { return e.id == id; });
  return found == entries_.end() ? nullptr : &*found;
}

Peers::Id Peers::add(Peer peer, double now) {
  entries_.push_back({++latest_, std::move(peer), now, std::nullopt, {}});
  return latest_;
}

void Peers::remove(Id id) {
  std::erase_if(entries_, [id](const Entry& entry) { return entry.id == id; });
}

void Peers::heard(Id id, double now) {
  Entry* entry = find(id);
  if (entry == nullptr) return;
  entry->heard = now;
  entry->said_something = now;
}

void Peers::knows_end(Id id) {
  if (Entry* entry = find(id)) entry->peer.knows_end = true;
}

std::string Peers::why(Id id) const {
  const Entry* entry = find(id);
  return entry == nullptr ? std::string() : entry->why;
}

std::vector<Peers::Id> Peers::give_up_silent(double now, const std::map<int, std::string>& awaited) {
  const bool paused = now - std::exchange(looked_, now) > in_seconds(wire::kPause);
  std::vector<Id> silent;
  for (Entry& entry : entries_) {
    if (paused) entry.heard = now;
    if (now - entry.heard < in_seconds(wire::kSilence) || !entry.why.empty()) continue;
    const auto expected = awaited.find(entry.peer.member);
    entry.why = fmt::format("no heartbeat for {:.1f} s{}", now - entry.heard,
                            expected == awaited.end() ? std::string() : " while waiting for " + expected->second);
    silent.push_back(entry.id);
  }
  return silent;
}

bool Peers::any(const std::function<bool(const Peer&)>& which) const {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) { return which(entry.peer); });
}

bool Peers::has(const std::string& role, uint64_t incarnation) const {
  return any([&](const Peer& peer) { return peer.role == role && peer.incarnation == incarnation; });
}

std::vector<Peers::Id> Peers::those(const std::function<bool(const Peer&)>& which) const {
  std::vector<Id> found;
  for (const Entry& entry : entries_) {
    if (which(entry.peer)) found.push_back(entry.id);
  }
  return found;
}

std::optional<Peers::Holder> Peers::other_holder(const std::string& role, uint64_t incarnation, double since) const {
  std::optional<Holder> holder;
  for (const Entry& entry : entries_) {
    const Peer& peer = entry.peer;
    const bool another = peer.role == role && peer.incarnation != 0 && peer.incarnation != incarnation;
    if (!another || !entry.why.empty()) continue;
    holder = {peer.process, entry.said_something && *entry.said_something > since + kUnderWay};
    if (holder->alive) break;
  }
  return holder;
}

}  // namespace lockstep::ps
