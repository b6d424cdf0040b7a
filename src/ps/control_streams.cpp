#include "ps/control_streams.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ps/messages.h"

namespace lockstep::ps {

ControlStreams::Entry::Entry(ControlStreams& streams, Peer peer, transport::Stream& stream)
    : streams_(streams), peer_(std::move(peer)), stream_(stream) {
  const base::MutexLock lock(streams_.mutex_);
  streams_.entries_.push_back(this);
}

ControlStreams::Entry::~Entry() {
  const base::MutexLock lock(streams_.mutex_);
  std::erase(streams_.entries_, this);
}

void ControlStreams::Entry::heard() {
  const base::MutexLock lock(streams_.mutex_);
  heard_ = said_something_ = Clock::now();
}

void ControlStreams::Entry::knows_end() {
  const base::MutexLock lock(streams_.mutex_);
  peer_.knows_end = true;
}

std::string ControlStreams::Entry::why() const {
  const base::MutexLock lock(streams_.mutex_);
  return why_;
}

// Sends to some peers. A peer that does not read cannot block these writes: it is given up long before the transport's
// window is full of such small frames.
void ControlStreams::send(const transport::Header& header, const google::protobuf::MessageLite* message,
                          const std::function<bool(const Peer&)>& to) {
  const base::MutexLock lock(mutex_);
  for (Entry* entry : entries_) {
    if (!to(entry->peer_)) continue;
    const base::Status sent =
        message == nullptr ? entry->stream_.write(header) : ps::send(entry->stream_, header, *message);
    if (!sent) entry->stream_.cancel(sent.failure().message());
  }
}

void ControlStreams::tick(const std::map<int, std::string>& awaited) {
  send(header(Kind::heartbeat), nullptr, [](const Peer&) { return true; });
  const base::MutexLock lock(mutex_);
  const Clock::time_point now = Clock::now();
  // This process itself was suspended, so silence says nothing about the others.
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

bool ControlStreams::any(const std::function<bool(const Peer&)>& which) const {
  const base::MutexLock lock(mutex_);
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry* entry) { return which(entry->peer_); });
}

std::optional<ControlStreams::Holder> ControlStreams::other_holder(const std::string& role, uint64_t incarnation,
                                                                   Clock::time_point since) const {
  const base::MutexLock lock(mutex_);
  std::optional<Holder> holder;
  for (const Entry* entry : entries_) {
    const Peer& peer = entry->peer_;
    const bool another = peer.role == role && peer.incarnation != 0 && peer.incarnation != incarnation;
    if (!another || !entry->why_.empty()) continue;
    holder = {peer.process, entry->said_something_ > since};
    if (holder->alive) break;
  }
  return holder;
}

void ControlStreams::cancel_all(const std::string& why) {
  const base::MutexLock lock(mutex_);
  for (Entry* entry : entries_) entry->stream_.cancel(why);
}

}  // namespace lockstep::ps
