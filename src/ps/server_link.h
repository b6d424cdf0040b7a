// A worker's connection to one server: a data stream for the training thread, and a control stream on its own thread.
// Heartbeats of the control stream tell whether the server lives. If the server is silent or gone, or the data stream
// has broken alone, the data stream is cancelled, which wakes threads waiting on it; `stream` reconnects for as long as
// the patience lasts.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "ps/link_watch.h"
#include "ps/messages.h"
#include "transport/stream.h"
#include "wire/liveness.h"

namespace lockstep::ps {

using wire::Clock;

/// A line for people: level "info", "warning" or "error".
using Log = std::function<void(std::string_view level, const std::string& text)>;

struct ServerLinkOptions {
  std::string server;  ///< "ps:0"
  std::string address;
  wire::Hello hello;  ///< hello of this process
  transport::Security security;
  double patience = 600;
  std::chrono::microseconds spin{0};  ///< time that waits on the data stream poll before they sleep
  Log log;
  const std::atomic<bool>* interrupt = nullptr;
  base::TrafficMeter* meter = nullptr;  ///< counts the traffic of all its connections; borrowed
  /// Asked by the waiting thread while the server cannot be reached; may be absent.
  exchange::LookForEnding look_for_ending;
  /// Called by a thread of the link when the server is lost: its connection closed or it is silent.
  std::function<void()> on_lost;
};

class ServerLink {
 public:
  explicit ServerLink(ServerLinkOptions options);
  ~ServerLink();
  ServerLink(const ServerLink&) = delete;
  ServerLink& operator=(const ServerLink&) = delete;

  /// Ends its threads, which call `on_lost`; nothing can be asked of it any more.
  void stop();
  /// Returns the data stream, connected and welcomed; reconnects if it was lost. The failure names the server, the
  /// address and `awaited`. For the training thread.
  base::Result<transport::Stream*> stream(const std::string& awaited);
  /// Number of connections so far: after a change, earlier frames may be lost.
  [[nodiscard]] uint64_t connections() const { return connections_; }
  [[nodiscard]] const wire::Welcome& welcome() const { return welcome_; }
  /// Closes the data stream; the next `stream` reconnects.
  void drop(const std::string& why);
  /// Does the same from any thread, and wakes a thread waiting for the data stream.
  void lose(const std::string& why);
  /// Returns the data stream without reconnecting, to read answers; a failure if it was lost.
  base::Result<transport::Stream*> current();
  [[nodiscard]] bool intact() { return current().ok(); }
  /// Returns true if training has ended: the server said so, or there are signs of it.
  [[nodiscard]] bool ended() const { return ended_; }
  /// The reason for the end, if known.
  [[nodiscard]] train::StopReason why_ended() const { return why_ended_; }
  [[nodiscard]] const std::string& name() const { return options_.server; }
  [[nodiscard]] const std::string& address() const { return options_.address; }
  [[nodiscard]] transport::Traffic traffic() const;

 private:
  /// Tries once to connect and be welcomed.
  base::Status connect();
  void keep_control();
  void keep_control_until_the_end();
  void listen(transport::Stream& stream);
  /// Called when the control stream is welcomed: a data stream to an earlier process of the server is lost, even if its
  /// end was not seen.
  void compare(uint64_t process);
  void watch();
  bool silent_too_long();
  bool data_broke() LOCKSTEP_REQUIRES(mutex_);
  void note_end(train::StopReason why);
  [[nodiscard]] bool interrupted() const;
  /// Returns true if the link should stop trying to reach the server.
  [[nodiscard]] bool leaving() const;

  ServerLinkOptions options_;
  wire::Welcome welcome_;
  uint64_t connections_ = 0;
  transport::Traffic traffic_before_;
  std::atomic<bool> ended_ = false;
  std::atomic<train::StopReason> why_ended_ = train::StopReason::none;
  std::atomic<bool> stopping_ = false;

  base::Mutex mutex_;
  base::Condition wake_;
  std::shared_ptr<transport::Stream> data_ LOCKSTEP_GUARDED_BY(mutex_);
  std::string lost_ LOCKSTEP_GUARDED_BY(mutex_);  ///< the reason why the data stream was given up
  transport::Stream* control_ LOCKSTEP_GUARDED_BY(mutex_) = nullptr;
  LinkWatch link_watch_ LOCKSTEP_GUARDED_BY(mutex_);

  std::thread control_thread_;
  std::thread watch_thread_;
};

}  // namespace lockstep::ps
