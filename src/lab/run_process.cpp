#include "lab/run_process.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace lockstep::lab {
namespace {

using process::Stream;

constexpr int kTickMilliseconds = 200;
constexpr double kGraceSeconds = 40;  ///< longer than the 30 s that a launcher gives its roles
constexpr int kStopLooks = 200;       ///< until the child counts as one that does not stop, such as a launcher of hosts
constexpr std::chrono::milliseconds kStopLook(10);

}  // namespace

std::string why_failed(const Followed& run) {
  if (run.ending->signalled) return run.ending->text();
  if (run.failure && !run.failure->text.empty()) return run.failure->text;
  return run.last_error.empty() ? run.ending->text() : run.last_error;
}

int read_signal(int signals) {
  pollfd ready{signals, POLLIN, 0};
  if (::poll(&ready, 1, 0) != 1) return 0;
  signalfd_siginfo info{};
  return ::read(signals, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

void stop_with(const process::Child* child) {
  if (child != nullptr) {
    child->signal(SIGTSTP);
    // A launcher stops its roles first. Continued before it has stopped itself, it would stay stopped.
    for (int i = 0; i < kStopLooks && !child->stopped(); ++i) std::this_thread::sleep_for(kStopLook);
  }
  ::raise(SIGSTOP);
  if (child != nullptr) child->signal(SIGCONT);
}

Followed follow(const process::Command& command, const std::string& log, const std::string& failure_file, int signals,
                const std::function<void()>& tick) {
  std::ofstream stream;
  if (!log.empty()) stream.open(log, std::ios::trunc);
  std::filesystem::remove(failure_file);
  Followed run;
  const auto out = [&](const std::string& line) { stream << line << '\n'; };
  const auto err = [&](const std::string& line) {
    stream << line << '\n';
    if (!line.empty()) run.last_error = line;
  };
  process::Child child(command);
  std::chrono::steady_clock::time_point asked;
  while (!(run.ending = child.reap())) {
    std::vector<pollfd> fds{{child.end_fd(), POLLIN, 0},
                            {signals, POLLIN, 0},
                            {child.fd(Stream::out), POLLIN, 0},
                            {child.fd(Stream::err), POLLIN, 0}};
    ::poll(fds.data(), fds.size(), kTickMilliseconds);
    child.read(Stream::out, out);
    child.read(Stream::err, err);
    const int signal = read_signal(signals);
    if (signal == SIGTSTP) {
      const auto before = std::chrono::steady_clock::now();
      stop_with(&child);
      const auto passed = std::chrono::steady_clock::now() - before;
      asked += passed;
      run.stopped_seconds += std::chrono::duration<double>(passed).count();
    } else if (signal != 0 &&
               !(signal == SIGHUP && run.signal != 0)) {  // the kernel and the shell may both send SIGHUP
      child.signal(run.signal == 0 ? SIGINT : SIGKILL);   // a second signal asks for an immediate end
      if (run.signal == 0) asked = std::chrono::steady_clock::now();
      run.signal = signal;
    }
    const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - asked).count();
    if (run.signal != 0 && waited > kGraceSeconds) child.signal(SIGKILL);
    tick();
  }
  child.read_rest(Stream::out, out);
  child.read_rest(Stream::err, err);
  run.failure = launch::read_failure(failure_file);
  if (log.empty()) std::filesystem::remove(failure_file);
  run.log_failed = !log.empty() && !stream.flush();
  return run;
}

}  // namespace lockstep::lab
