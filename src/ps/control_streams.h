// The control streams of a server: one per process that it hears of, with heartbeats both ways. A peer is lost when its
// connection closes or it has been silent for the limit. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
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
  bool knows_end = false;  ///< confirmed that it has heard of the end
  std::string process;     ///< for lines: host, number and folder
};

class ControlStreams {
 public:
  /// Registers a peer for the entry's lifetime. Its stream's handler owns it, one per control stream.
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
    friend class ControlStreams;
    ControlStreams& streams_;
    Peer peer_;
    transport::Stream& stream_;
    Clock::time_point heard_ = Clock::now();
    Clock::time_point said_something_{};  ///< like heard_, whether this process was suspended or not
    std::string why_;
  };

  /// Sends a heartbeat to all peers and cancels silent ones. `awaited` names what each member should have sent.
  void tick(const std::map<int, std::string>& awaited);
  /// Sends a frame to every peer for which `to` is true.
  void send(const transport::Header& header, const google::protobuf::MessageLite* message,
            const std::function<bool(const Peer&)>& to);
  /// Returns true if there is such a peer.
  [[nodiscard]] bool any(const std::function<bool(const Peer&)>& which) const;
  /// Returns the process that has the role, if it is another one. `alive`: it was heard of after `since`.
  struct Holder {
    std::string process;
    bool alive = false;
  };
  [[nodiscard]] std::optional<Holder> other_holder(const std::string& role, uint64_t incarnation,
                                                   Clock::time_point since) const;
  void cancel_all(const std::string& why);

 private:
  mutable base::Mutex mutex_;
  std::vector<Entry*> entries_ LOCKSTEP_GUARDED_BY(mutex_);
  Clock::time_point ticked_ LOCKSTEP_GUARDED_BY(mutex_) = Clock::now();
};

}  // namespace lockstep::ps
