#include "signals.h"

#include <unistd.h>

#include <csignal>

namespace lockstep::tools {
namespace {

// The only mutable globals of the program besides last_words.cpp: a signal handler can reach nothing else.
std::atomic<bool> interrupted{false};
std::atomic<int> exit_code{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void handle(int signal) {
  const bool again = interrupted.exchange(true);
  if (!again) exit_code = 128 + signal;
  // A terminal that closes may send SIGHUP twice: from the kernel and from the shell.
  if (again && signal != SIGHUP) _exit(128 + signal);
}

/// False if the program was started to survive the signal, as by nohup.
bool is_wanted(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_IGN;
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  if (is_wanted(SIGHUP)) sigaction(SIGHUP, &action, nullptr);
  sigaction(SIGUSR1, &action,
            nullptr);  // mpirun passes it on to its ranks, and schedulers send it some time before the end
}

const std::atomic<bool>* interrupt_flag() { return &interrupted; }

int interrupt_exit_code() { return exit_code; }

}  // namespace lockstep::tools
