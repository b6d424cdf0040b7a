// Writing to a connection that the other side has closed, with libraries that write without MSG_NOSIGNAL (OpenSSL,
// Gloo).
#pragma once

#include <csignal>

namespace lockstep::base {

/// Blocks SIGPIPE in this thread for its lifetime, so that a closed connection is an error and not the end of the
/// process. Costs one look if the process ignores the signal anyway.
class NoBrokenPipe {
 public:
  NoBrokenPipe();
  NoBrokenPipe(const NoBrokenPipe&) = delete;
  NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;
  ~NoBrokenPipe();

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool blocked_ = false;
};

}  // namespace lockstep::base
