#include "ps/control_streams.h"

#include <utility>

#include "ps/messages.h"

namespace lockstep::ps {

ControlStreams::Entry::Entry(ControlStreams& streams, Peer peer, transport::Stream& stream) : streams_(streams) {
  const base::MutexLock lock(streams_.mutex_);
  id_ = streams_.peers_.add(std::move(peer), streams_.clock_());
  streams_.streams_[id_] = &stream;
}

ControlStreams::Entry::~Entry() {
  const base::MutexLock lock(streams_.mutex_);
  streams_.peers_.remove(id_);
  streams_.streams_.erase(id_);
}

void ControlStreams::Entry::heard() {
  const base::MutexLock lock(streams_.mutex_);
  streams_.peers_.heard(id_, streams_.clock_());
}

void ControlStreams::Entry::knows_end() {
  const base::MutexLock lock(streams_.mutex_);
  streams_.peers_.knows_end(id_);
}

std::string ControlStreams::Entry::why() const {
  const base::MutexLock lock(streams_.mutex_);
  return streams_.peers_.why(id_);
}

// Sends to some peers. Writes of a server's streams do not wait, so a peer that does not read holds nobody up.
void ControlStreams::send(const transport::Header& header, const google::protobuf::MessageLite* message,
                          const std::function<bool(const Peer&)>& to) {
  const base::MutexLock lock(mutex_);
  for (const Peers::Id id : peers_.those(to)) {
    transport::Stream& stream = *streams_.at(id);
    const base::Status sent = message == nullptr ? stream.write(header) : ps::send(stream, header, *message);
    if (!sent) stream.cancel(sent.failure().message());
  }
}

void ControlStreams::tick(const std::map<int, std::string>& awaited) {
  send(header(Kind::heartbeat), nullptr, [](const Peer&) { return true; });
  const base::MutexLock lock(mutex_);
  for (const Peers::Id id : peers_.give_up_silent(clock_(), awaited)) streams_.at(id)->cancel(peers_.why(id));
}

bool ControlStreams::any(const std::function<bool(const Peer&)>& which) const {
  const base::MutexLock lock(mutex_);
  return peers_.any(which);
}

std::optional<Peers::Holder> ControlStreams::other_holder(const std::string& role, uint64_t incarnation,
                                                          double since) const {
  const base::MutexLock lock(mutex_);
  return peers_.other_holder(role, incarnation, since);
}

Peers ControlStreams::peers() const {
  const base::MutexLock lock(mutex_);
  return peers_;
}

}  // namespace lockstep::ps
