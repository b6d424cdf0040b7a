#include "base/broken_pipe.h"

#include <pthread.h>

#include <ctime>

namespace lockstep::base {

NoBrokenPipe::NoBrokenPipe() {
  struct sigaction action {};
  if (sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) return;
  sigemptyset(&pipe_);
  sigaddset(&pipe_, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  blocked_ = sigismember(&before_, SIGPIPE) == 0;
}

NoBrokenPipe::~NoBrokenPipe() {
  if (!blocked_) return;
  const timespec now{};
  while (sigtimedwait(&pipe_, nullptr, &now) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace lockstep::base
