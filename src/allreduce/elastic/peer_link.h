// A connection between two members that has been agreed on. What is sent waits in a queue for a thread of the link, so
// `send` never waits for a peer that does not read; when there is nothing to send for a second, the thread sends a
// heartbeat. The stream is borrowed and read by whoever made the link. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "allreduce/elastic/agreement.h"
#include "base/mutex.h"
#include "transport/stream.h"
#include "wire/liveness.h"

namespace lockstep::allreduce::elastic {

class PeerLink {
 public:
  PeerLink(transport::Stream& stream, std::function<Message()> heartbeat);
  /// Cancels the stream.
  ~PeerLink();
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;

  void send(const Message& message);
  void heard();
  /// This process was stopped itself, which says nothing about the peer.
  void forgive() { heard(); }
  /// Gives the peer up where nothing has come from it for too long.
  void check_silence();
  void cancel(const std::string& why);
  /// Why it was given up on this side; empty: it was not.
  [[nodiscard]] std::string why() const;

 private:
  struct Outgoing {
    transport::Header header;
    std::string bytes;
  };
  void write_all();

  transport::Stream& stream_;
  std::function<Message()> heartbeat_;
  mutable base::Mutex mutex_;
  base::Condition wake_;
  std::deque<Outgoing> queue_ LOCKSTEP_GUARDED_BY(mutex_);
  wire::Clock::time_point heard_ LOCKSTEP_GUARDED_BY(mutex_) = wire::Clock::now();
  std::string why_ LOCKSTEP_GUARDED_BY(mutex_);
  bool ended_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::thread writer_;
};

}  // namespace lockstep::allreduce::elastic
