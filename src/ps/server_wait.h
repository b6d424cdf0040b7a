// How a handler of a server waits for others.
#pragma once

#include "lockstep/error.h"
#include "ps/server.h"

namespace lockstep::ps {

constexpr std::chrono::milliseconds kRoomPoll{10};  ///< between two looks whether a View has ended

template <class Done>
void Server::wait_until(const SessionPtr& session, Done done) {
  for (;;) {
    // Checked first: nobody may act for a connection that is gone.
    const auto found = sessions_.find(session->hello.member());
    const bool here = session == evaluator_ || (found != sessions_.end() && found->second == session);
    if (!here || session->given_up) throw Error("this connection was dropped");
    if (done()) return;
    if (ended_) throw Error("the server ends");
    if (no_room_since_ == 0) {
      changed_.wait(mutex_);
      continue;
    }
    changed_.wait_for(mutex_, kRoomPoll);
    commit_if_ready();
    apply_announced();
  }
}

/// Waits for the first parameters. After a server lost its state, the chief must be free to send new ones.
inline void Server::wait_for_parameters(const SessionPtr& session, const char* what) {
  if (!initialised_ && session->hello.member() == 0) {
    throw DataError(std::string("the chief must set the parameters before ") + what);
  }
  wait_until(session, [&] {
    mutex_.assert_held();
    return initialised_;
  });
}

}  // namespace lockstep::ps
