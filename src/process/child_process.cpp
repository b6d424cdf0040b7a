#include "process/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "base/cores.h"
#include "base/limits.h"
#include "lockstep/error.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace lockstep::process {
namespace {

using base::FileHandle;

[[noreturn]] void fail(const std::string& program, int error_number) {
  base::throw_io_error("run", program, error_number);
}

struct Ends {
  FileHandle reading;
  FileHandle writing;
};

Ends make_pipe(const std::string& program) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail(program, errno);
  return {FileHandle(ends[0]), FileHandle(ends[1])};
}

void make_nonblocking(const FileHandle& file) { fcntl(file.get(), F_SETFL, fcntl(file.get(), F_GETFL) | O_NONBLOCK); }

std::vector<std::string> make_environment(const Command& command) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) result.emplace_back(*entry);
  for (const auto& [name, value] : command.environment) {
    std::erase_if(result, [&name = name](const std::string& entry) { return entry.starts_with(name + "="); });
    if (!value.empty()) result.push_back(name + "=" + value);
  }
  return result;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

/// Everything that the child needs between fork and exec, where memory must not be allocated.
struct Start {
  const char* program = nullptr;
  char* const* argv = nullptr;
  char* const* envp = nullptr;
  pid_t parent = 0;
  int input = -1;
  int out = -1;
  int err = -1;
  int report = -1;
  int watchman = -1;
  bool foreground = false;
  int death_signal = SIGKILL;
  int network = -1;
  const FileHandle* groups = nullptr;
  size_t group_count = 0;
};

/// Joins the control groups and the network namespace. Returns false, with errno, if that fails.
bool join_groups_and_network(const Start& start) {
  for (size_t i = 0; i < start.group_count; ++i) {
    if (::write(start.groups[i].get(), "0", 1) != 1) return false;  // 0 means the writing process
  }
  return start.network < 0 || setns(start.network, CLONE_NEWNET) == 0;
}

void reset_signals() {
  for (int number = 1; number < NSIG; ++number) {
    if (number != SIGKILL && number != SIGSTOP) std::signal(number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void become(const Start& start) {
  if (!start.foreground) setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, start.death_signal);
  if (getppid() != start.parent) _exit(128 + SIGKILL);  // the parent died before this process could ask to die with it
  const pid_t self = getpid();
  if (start.watchman >= 0) (void)!::write(start.watchman, &self, sizeof self);
  bool ready = join_groups_and_network(start);
  if (start.input >= 0 || !start.foreground) {
    const int input = start.input >= 0 ? start.input : open("/dev/null", O_RDONLY | O_CLOEXEC);
    ready = ready && dup2(input, STDIN_FILENO) >= 0;
  }
  if (start.out >= 0) ready = ready && dup2(start.out, STDOUT_FILENO) >= 0 && dup2(start.err, STDERR_FILENO) >= 0;
  reset_signals();
  if (ready) execvpe(start.program, start.argv, start.envp);
  const int error = errno;
  (void)!::write(start.report, &error, sizeof error);
  _exit(127);
}

FileHandle open_seat(const std::string& path, int flags) {
  FileHandle file(open(path.c_str(), flags | O_CLOEXEC));
  if (!file.open()) base::throw_io_error("open", path, errno);
  return file;
}

/// Returns the error of a failed exec; 0 if it succeeded.
int read_report(const FileHandle& report) {
  int error = 0;
  ssize_t count = 0;
  do {
    count = ::read(report.get(), &error, sizeof error);
  } while (count < 0 && errno == EINTR);
  return count == sizeof error ? error : 0;
}

}  // namespace

std::string Ending::text() const {
  if (!signalled) return fmt::format("exit code {}", number);
  const char* name = strsignal(number);  // NOLINT(concurrency-mt-unsafe): texts of known signals are constant
  return fmt::format("killed by signal {} ({})", number, name == nullptr ? "unknown" : name);
}

Child::Child(const Command& command) : foreground_(command.foreground), watchman_(command.watchman) {
  if (command.argv.empty()) throw UsageError("a command needs a name");
  const std::vector<std::string> environment = make_environment(command);
  const std::vector<char*> argv = pointers(command.argv);
  const std::vector<char*> envp = pointers(environment);
  const std::string& program = command.program.empty() ? command.argv.front() : command.program;
  Ends out = command.own_output ? make_pipe(program) : Ends{};
  Ends err = command.own_output ? make_pipe(program) : Ends{};
  Ends report = make_pipe(program);
  Ends input = command.hold_stdin ? make_pipe(program) : Ends{};
  std::vector<FileHandle> groups;
  for (const std::string& path : command.groups) groups.push_back(open_seat(path, O_WRONLY));
  const FileHandle network =
      command.network_namespace.empty() ? FileHandle() : open_seat(command.network_namespace, O_RDONLY);
  Start start{program.c_str(),   argv.data(),       envp.data(),          getpid(),         input.reading.get(),
              out.writing.get(), err.writing.get(), report.writing.get(), command.watchman, command.foreground};
  start.death_signal = command.death_signal;
  start.network = network.get();
  start.groups = groups.data();
  start.group_count = groups.size();
  {
    const base::KeptToCores inherited(command.cores);
    pid_ = fork();
    if (pid_ == 0) become(start);
  }
  if (pid_ < 0 && errno == EAGAIN) throw LimitError("cannot run " + program + ": " + base::thread_limit_text(), EAGAIN);
  if (pid_ < 0) fail(program, errno);
  if (!foreground_) setpgid(pid_, pid_);  // parent and child both set it: a signal to the group must find it
  pidfd_ = FileHandle(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  const int pidfd_error = errno;
  report.writing.reset();
  const int error = read_report(report.reading);
  if (error != 0 || !pidfd_.open()) {
    kill(target(), SIGKILL);
    waitpid(pid_, nullptr, 0);
    tell_watchman();
    fail(program, error != 0 ? error : pidfd_error);
  }
  out_.file = std::move(out.reading);
  err_.file = std::move(err.reading);
  input_ = std::move(input.writing);
  for (const FileHandle* file : {&out_.file, &err_.file, &input_}) {
    if (file->open()) make_nonblocking(*file);
  }
}

Child::~Child() {
  if (ending_) return;
  kill(target(), SIGKILL);
  tell_watchman();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

/// Tells the watchman that the group has ended.
void Child::tell_watchman() const {
  const pid_t word = -pid_;
  if (watchman_ >= 0) (void)!::write(watchman_, &word, sizeof word);
}

void Child::read(Stream stream, const LineReader::Sink& sink) {
  Pipe& from = pipe(stream);
  std::array<char, 16384> buffer{};
  // A child that writes without end must not keep its launcher here.
  for (int turn = 0; turn < 64 && from.file.open(); ++turn) {
    const ssize_t count = ::read(from.file.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count <= 0) {
      from.file.reset();
      from.lines.finish(sink);
      return;
    }
    from.lines.feed({buffer.data(), static_cast<size_t>(count)}, sink);
  }
}

void Child::read_rest(Stream stream, const LineReader::Sink& sink) {
  read(stream, sink);
  pipe(stream).file.reset();
  pipe(stream).lines.finish(sink);
}

void Child::write(std::string_view text) {
  if (!input_.open()) return;
  const ssize_t count = ::write(input_.get(), text.data(), text.size());
  if (count < 0 && errno != EAGAIN && errno != EINTR) input_.reset();
}

void Child::signal(int number) const {
  if (!ending_) kill(target(), number);
}

std::optional<Ending> Child::reap() {
  if (ending_) return ending_;
  siginfo_t info{};
  const auto pid = static_cast<id_t>(pid_);
  if (waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return std::nullopt;
  if (!foreground_) kill(-pid_, SIGKILL);  // before the number can be reused
  tell_watchman();
  waitid(P_PID, pid, &info, WEXITED);
  ending_ = Ending{info.si_code != CLD_EXITED, info.si_status};
  return ending_;
}

bool Child::stopped() const {
  std::ifstream file(fmt::format("/proc/{}/stat", pid_));
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  const size_t name_end = stat.rfind(')');  // the name may contain anything
  return name_end != std::string::npos && name_end + 2 < stat.size() && stat[name_end + 2] == 'T';
}

}  // namespace lockstep::process
