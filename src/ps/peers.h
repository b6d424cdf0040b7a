// The processes that a server hears of: one control stream each, with heartbeats both ways. A peer is gone when its
// connection closes or nothing has come from it for the silence limit. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
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

struct Peer {
  std::string role;  ///< "worker:1"
  int member = -1;
  uint64_t incarnation = 0;
  std::string address;
  bool knows_end = false;  ///< it said that it has heard of the end
};

class Peers {
 public:
  /// While it lives, the peer is one of `peers`. One per control stream, made by its handler.
  class Entry {
   public:
    Entry(Peers& peers, Peer peer, transport::Stream& stream);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

    void heard();
    void knows_end();
    /// The reason why the peer was given up; empty: its connection closed.
    [[nodiscard]] std::string why() const;

   private:
    friend class Peers;
    Peers& peers_;
    Peer peer_;
    transport::Stream& stream_;
    Clock::time_point heard_ = Clock::now();
    std::string why_;
  };

  /// Sends a heartbeat to everyone and cancels those who are silent. `awaited` says what members should have sent.
  void tick(const std::map<int, std::string>& awaited);
  /// To everyone for whom `to` is true.
  void send(const transport::Header& header, const google::protobuf::MessageLite* message,
            const std::function<bool(const Peer&)>& to);
  /// Whether such a peer is here.
  [[nodiscard]] bool any(const std::function<bool(const Peer&)>& which) const;
  void cancel_all(const std::string& why);

 private:
  mutable base::Mutex mutex_;
  std::vector<Entry*> entries_ LOCKSTEP_GUARDED_BY(mutex_);
  Clock::time_point ticked_ LOCKSTEP_GUARDED_BY(mutex_) = Clock::now();
};

}  // namespace lockstep::ps
