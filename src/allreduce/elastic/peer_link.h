// An established connection between two members. Messages wait in a queue for the link's thread, so `send` never waits
// for a slow peer. A `source` may supply messages when the thread is ready to write, so that it can join those that
// have waited. After a second without messages the thread sends a heartbeat. The stream is borrowed; its owner reads
// it. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "transport/stream.h"
#include "wire/liveness.h"

namespace lockstep::allreduce::elastic {

class PeerLink {
 public:
  struct Outgoing {
    transport::Header header;
    std::string bytes;
  };
  using Source = std::function<std::vector<Outgoing>()>;
  PeerLink(transport::Stream& stream, std::function<Outgoing()> heartbeat, Source source = {});
  /// Cancels the stream.
  ~PeerLink();
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;

  void send(Outgoing outgoing);
  /// The source has messages; they are sent after those of the queue.
  void send_from_source();
  void heard();
  /// Ignores the peer's silence so far, because this process itself was stopped.
  void forgive() { heard(); }
  /// Cancels the stream if the peer has been silent for too long.
  void check_silence();
  void cancel(const std::string& why);
  /// Returns why this side ended the connection; empty: it did not.
  [[nodiscard]] std::string why() const;

 private:
  void write_all();

  transport::Stream& stream_;
  std::function<Outgoing()> heartbeat_;
  Source source_;
  mutable base::Mutex mutex_;
  base::Condition wake_;
  std::deque<Outgoing> queue_ LOCKSTEP_GUARDED_BY(mutex_);
  wire::Clock::time_point heard_ LOCKSTEP_GUARDED_BY(mutex_) = wire::Clock::now();
  std::string why_ LOCKSTEP_GUARDED_BY(mutex_);
  bool source_has_some_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  bool ended_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::thread writer_;
};

}  // namespace lockstep::allreduce::elastic
