// A Server's parts: the acceptor's thread, and the streams, each with its handler's thread or served by a hand.
// Internal.
//
//    server.cpp        accepting, streams with threads
//    server_hands.cpp  streams with hands
#pragma once

#include <chrono>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"
#include "transport/hand.h"
#include "transport/lobby.h"
#include "transport/served.h"
#include "transport/sockets.h"

namespace lockstep::transport {

class Server::Impl {
 public:
  Impl(const ServerOptions& options, Handler handler);
  ~Impl() { shutdown(); }

  void shutdown();
  [[nodiscard]] int port() const { return listener_.port(); }

 private:
  /// A stream: with its handler's thread, or served by a hand.
  struct Session {
    std::thread thread;
    Lobby::Ready ready;                           ///< with a hand; used by the acceptor
    std::unique_ptr<Served> served;               ///< the same
    std::chrono::steady_clock::time_point ended;  ///< with a hand: when it ended, or its stream was destroyed
    ServerHost* host = nullptr;                   ///< owned by the session's thread
    ServerStream* stream = nullptr;               ///< set while its handler runs
    bool admitted = false;
    bool lingers = false;  ///< true while the peer may still read the last frames of the ended stream
    bool done = false;
  };
  // The acceptor's thread.
  void run();
  /// Waits once and handles the events. Returns false to end.
  bool wait_and_handle();
  void accept_some();
  [[nodiscard]] bool has_room();
  void begin(Lobby::Ready ready);
  void join_finished();
  /// Handles a system limit: closes strangers first, because they must not end the server.
  void no_room(const std::string& why);
  void fail(const std::string& why);
  // Streams with hands.
  Hands make_hands();
  void begin_by_hand(Lobby::Ready ready);
  /// Adds the sockets of ended streams whose peers may hang up, and shortens the timeout.
  void add_ending(std::vector<pollfd>& polled, int& timeout_ms) const;
  void advance_ending();
  /// Returns true if nothing is left of the session.
  bool advance_ending(Session& session);
  void end_all_by_hands();

  // A session's thread.
  void serve(Session& session, Lobby::Ready ready);
  /// Ends a stream in order, and waits until its peer hangs up.
  void finish(Session& session, Lobby::Ready ready, const std::string& failure, std::chrono::milliseconds linger);
  void admit(Session& session);

  void ring();
  /// Returns why there is no place for another stream. A peer that has not hung up makes room.
  [[nodiscard]] std::string why_full() LOCKSTEP_REQUIRES(mutex_);
  void end_lingering(Session& session) LOCKSTEP_REQUIRES(mutex_);

  const ServerOptions options_;
  const Handler handler_;
  const base::FileHandle bell_;  ///< wakes the acceptor: a session has ended, or the server should

  base::Mutex mutex_;
  bool stopping_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  int streams_ LOCKSTEP_GUARDED_BY(mutex_) = 0;        ///< admitted streams
  int lingering_ LOCKSTEP_GUARDED_BY(mutex_) = 0;      ///< ended streams whose connection is still open
  size_t unadmitted_ LOCKSTEP_GUARDED_BY(mutex_) = 0;  ///< sessions of strangers
  std::list<Session> sessions_ LOCKSTEP_GUARDED_BY(mutex_);
  std::vector<Session*> came_to_an_end_ LOCKSTEP_GUARDED_BY(mutex_);  ///< told by their hands

  Hands hands_;

  // Used only by the acceptor's thread.
  Lobby lobby_;
  Listener listener_;
  std::chrono::steady_clock::time_point accepts_from_;
  bool failed_ = false;
  std::vector<Session*> ending_;  ///< ended streams with hands
  bool hurried_ = false;          ///< peers have kLastHangUps at most
  std::thread acceptor_;
};

}  // namespace lockstep::transport
