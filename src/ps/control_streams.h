// The control streams of a server: one per process that it hears of, with heartbeats both ways. A peer is lost when its
// connection closes or it has been silent for the limit (peers.h decides). Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "ps/peers.h"
#include "transport/stream.h"
#include "wire/liveness.h"

namespace google::protobuf {
class MessageLite;
}

namespace lockstep::ps {

using wire::Clock;
using wire::kHeartbeat;
using wire::kPause;
using wire::kSilence;

class ControlStreams {
 public:
  /// `clock` returns the seconds that all times count.
  explicit ControlStreams(double (*clock)()) : clock_(clock), peers_(clock()) {}

  /// Registers a peer for the entry's lifetime. Its stream's session owns it.
  class Entry {
   public:
    Entry(ControlStreams& streams, Peer peer, transport::Stream& stream);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    void heard();
    void knows_end();
    /// The reason why the peer was given up; empty: its connection closed.
    [[nodiscard]] std::string why() const;

   private:
    ControlStreams& streams_;
    Peers::Id id_;
  };

  /// Sends a heartbeat to all peers and cancels silent ones. `awaited` names what each member should have sent.
  void tick(const std::map<int, std::string>& awaited);
  /// Sends a frame to every peer for which `to` is true.
  void send(const transport::Header& header, const google::protobuf::MessageLite* message,
            const std::function<bool(const Peer&)>& to);
  [[nodiscard]] bool any(const std::function<bool(const Peer&)>& which) const;
  [[nodiscard]] std::optional<Peers::Holder> other_holder(const std::string& role, uint64_t incarnation,
                                                          double since) const;
  /// A copy of what is known now.
  [[nodiscard]] Peers peers() const;

 private:
  double (*const clock_)();
  mutable base::Mutex mutex_;
  Peers peers_ LOCKSTEP_GUARDED_BY(mutex_);
  std::map<Peers::Id, transport::Stream*> streams_ LOCKSTEP_GUARDED_BY(mutex_);
};

}  // namespace lockstep::ps
