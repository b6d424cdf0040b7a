// How a handler of a server waits for others.
#pragma once

#include "lockstep/error.h"
#include "ps/server.h"

namespace lockstep::ps {

template <class Done>
void Server::wait_until(const SessionPtr& session, Done done) {
  for (;;) {
    // Checked first: nobody may act for a connection that is gone.
    const auto found = sessions_.find(session->hello.member());
    const bool here = session == evaluator_ || (found != sessions_.end() && found->second == session);
    if (!here || session->given_up) throw Error("this connection was dropped");
    if (done()) return;
    if (ended_) throw Error("the server ends");
    changed_.wait(mutex_);
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
