#include "process/caught_signals.h"

#include <sys/signalfd.h>

#include <cerrno>
#include <csignal>

namespace lockstep::process {

struct SignalMask {
  sigset_t set{};
};

CaughtSignals::CaughtSignals(const std::vector<int>& numbers) : before_(std::make_unique<SignalMask>()) {
  sigset_t caught;
  sigemptyset(&caught);
  for (const int number : numbers) sigaddset(&caught, number);
  fd_ = base::FileHandle(signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_.open()) base::throw_io_error("watch for", "signals", errno);
  pthread_sigmask(SIG_BLOCK, &caught, &before_->set);
}

CaughtSignals::~CaughtSignals() { pthread_sigmask(SIG_SETMASK, &before_->set, nullptr); }

}  // namespace lockstep::process
