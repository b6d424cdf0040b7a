// A worker's connection to one server: a data stream that the training thread uses, and a control stream on a thread of
// its own, whose heartbeats tell whether the server lives. When the server is silent or gone, the data stream is
// cancelled, so that whoever waits on it wakes; `stream` connects again, for as long as the patience lasts.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "ps/messages.h"
#include "ps/peers.h"
#include "transport/stream.h"

namespace lockstep::ps {

/// A line for people: level "info", "warning" or "error".
using Log = std::function<void(std::string_view level, const std::string& text)>;

struct ServerLinkOptions {
  std::string server;  ///< "ps:0"
  std::string address;
  wire::Hello hello;  ///< of this process
  transport::Security security;
  double patience = 600;
  std::chrono::microseconds spin{0};  ///< how long the data stream's waits poll before they sleep
  Log log;
  const std::atomic<bool>* interrupt = nullptr;
  base::TrafficMeter* meter = nullptr;  ///< of all its connections; borrowed
  /// Asked by the thread that waits for the server while that cannot be reached; may be absent.
  exchange::LookForEnding look_for_ending;
  /// The server is gone: its connection closed or it is silent. Called by a thread of the link.
  std::function<void()> on_lost;
};

class ServerLink {
 public:
  explicit ServerLink(ServerLinkOptions options);
  ~ServerLink();
  ServerLink(const ServerLink&) = delete;
  ServerLink& operator=(const ServerLink&) = delete;

  /// The data stream, connected and welcomed, again if it was lost. The failure names the server, the address and what
  /// was awaited. For the training thread.
  base::Result<transport::Stream*> stream(const std::string& awaited);
  /// How often it was connected: a change means that what was sent before may be lost.
  [[nodiscard]] uint64_t connections() const { return connections_; }
  [[nodiscard]] const wire::Welcome& welcome() const { return welcome_; }
  /// Gives the data stream up; the next `stream` connects again.
  void drop(const std::string& why);
  /// The same from any thread: whoever waits for the data stream wakes.
  void lose(const std::string& why);
  /// The data stream as it is: a failure when it was lost, for answers to what was sent on it.
  base::Result<transport::Stream*> current();
  [[nodiscard]] bool intact() { return current().ok(); }
  /// Whether training has ended: the server said so, or there are signs of it.
  [[nodiscard]] bool ended() const { return ended_; }
  /// Why it has, where that is known.
  [[nodiscard]] train::StopReason why_ended() const { return why_ended_; }
  [[nodiscard]] const std::string& name() const { return options_.server; }
  [[nodiscard]] const std::string& address() const { return options_.address; }
  [[nodiscard]] transport::Traffic traffic() const;

 private:
  /// One try to connect and to be welcomed.
  base::Status connect();
  void keep_control();
  void keep_control_until_the_end();
  void listen(transport::Stream& stream);
  /// The control stream was welcomed: a data stream to an earlier process of the server is lost, though nobody saw it
  /// end.
  void compare(uint64_t process);
  void watch();
  void note_end(train::StopReason why);
  [[nodiscard]] bool interrupted() const;
  /// No more tries to reach the server.
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
  std::string lost_ LOCKSTEP_GUARDED_BY(mutex_);  ///< why the data stream was given up
  transport::Stream* control_ LOCKSTEP_GUARDED_BY(mutex_) = nullptr;
  /// The server's processes that the two streams speak to; 0: not welcomed yet.
  uint64_t data_process_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  uint64_t control_process_ LOCKSTEP_GUARDED_BY(mutex_) = 0;
  Clock::time_point heard_ LOCKSTEP_GUARDED_BY(mutex_);

  std::thread control_thread_;
  std::thread watch_thread_;
};

}  // namespace lockstep::ps
