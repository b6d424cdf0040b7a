#include "process/watchman.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/limits.h"
#include "lockstep/error.h"

namespace lockstep::process {
namespace {

constexpr size_t kMostGroups = 4096;

/// Closes the launcher's terminal and files in this process.
void detach(int pipe) {
  setsid();
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  const int nothing = open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, fd);
  syscall(SYS_close_range, 3U, static_cast<unsigned>(pipe - 1), 0U);
  syscall(SYS_close_range, static_cast<unsigned>(pipe + 1), ~0U, 0U);
}

/// Uses only calls that are allowed after a fork. A number adds a group, its negative removes it.
[[noreturn]] void watch(int pipe) {
  static std::array<pid_t, kMostGroups> groups{};
  pid_t word = 0;
  for (;;) {
    const ssize_t count = read(pipe, &word, sizeof word);
    if (count < 0 && errno == EINTR) continue;
    if (count != sizeof word) break;
    auto* const slot = std::find(groups.begin(), groups.end(), word > 0 ? 0 : -word);
    if (slot != groups.end()) *slot = word > 0 ? word : 0;
  }
  for (const pid_t group : groups) {
    if (group > 0) kill(-group, SIGKILL);
  }
  _exit(0);
}

}  // namespace

Watchman::Watchman() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) base::throw_io_error("make", "a pipe", errno);
  const base::FileHandle reading(ends[0]);
  pipe_ = base::FileHandle(ends[1]);
  pid_ = fork();
  if (pid_ < 0 && errno == EAGAIN) throw LimitError(base::thread_limit_text(), EAGAIN);
  if (pid_ < 0) base::throw_io_error("start", "a process that watches over the others", errno);
  if (pid_ > 0) return;
  detach(reading.get());
  watch(reading.get());
}

Watchman::~Watchman() {
  pipe_.reset();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace lockstep::process
