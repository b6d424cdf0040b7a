#include "ps/peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ps/messages.h"

namespace lockstep::ps {

Peers::Entry::Entry(Peers& peers, Peer peer, transport::Stream& stream)
    : peers_(peers), peer_(std::move(peer)), stream_(stream) {
  const base::MutexLock lock(peers_.mutex_);
  peers_.entries_.push_back(this);
}

Peers::Entry::~Entry() {
  const base::MutexLock lock(peers_.mutex_);
  std::erase(peers_.entries_, this);
}

void Peers::Entry::heard() {
  const base::MutexLock lock(peers_.mutex_);
  heard_ = Clock::now();
}

void Peers::Entry::knows_end() {
  const base::MutexLock lock(peers_.mutex_);
  peer_.knows_end = true;
}

std::string Peers::Entry::why() const {
  const base::MutexLock lock(peers_.mutex_);
  return why_;
}

// A peer that does not read cannot hold these writes up: it is given up long before the transport's window is full of
// frames as small as these.
void Peers::send(const transport::Header& header, const google::protobuf::MessageLite* message,
                 const std::function<bool(const Peer&)>& to) {
  const base::MutexLock lock(mutex_);
  for (Entry* entry : entries_) {
    if (!to(entry->peer_)) continue;
    const base::Status sent =
        message == nullptr ? entry->stream_.write(header) : ps::send(entry->stream_, header, *message);
    if (!sent) entry->stream_.cancel(sent.failure().message());
  }
}

void Peers::tick(const std::map<int, std::string>& awaited) {
  send(header(Kind::heartbeat), nullptr, [](const Peer&) { return true; });
  const base::MutexLock lock(mutex_);
  const Clock::time_point now = Clock::now();
  // This process was stopped itself: that says nothing about the others.
  const bool paused = now - std::exchange(ticked_, now) > kPause;
  for (Entry* entry : entries_) {
    if (paused) entry->heard_ = now;
    if (now - entry->heard_ < kSilence || !entry->why_.empty()) continue;
    const double silent = std::chrono::duration<double>(now - entry->heard_).count();
    const auto expected = awaited.find(entry->peer_.member);
    entry->why_ = fmt::format("no heartbeat for {:.1f} s{}", silent,
                              expected == awaited.end() ? std::string() : " while waiting for " + expected->second);
    entry->stream_.cancel(entry->why_);
  }
}

bool Peers::any(const std::function<bool(const Peer&)>& which) const {
  const base::MutexLock lock(mutex_);
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry* entry) { return which(entry->peer_); });
}

void Peers::cancel_all(const std::string& why) {
  const base::MutexLock lock(mutex_);
  for (Entry* entry : entries_) entry->stream_.cancel(why);
}

}  // namespace lockstep::ps
