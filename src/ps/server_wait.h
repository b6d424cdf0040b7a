// How a handler of a server waits for others.
#pragma once

#include "lockstep/error.h"
#include "ps/server.h"

namespace lockstep::ps {

template <class Done>
void Server::wait_until(const SessionPtr& session, Done done) {
  while (!done()) {
    const auto found = sessions_.find(session->hello.member());
    const bool replaced = session->hello.member() >= 0 && (found == sessions_.end() || found->second != session);
    if (ended_ || replaced || session->given_up) throw Error("the server ends, or this connection was given up");
    changed_.wait(mutex_);
  }
}

}  // namespace lockstep::ps
