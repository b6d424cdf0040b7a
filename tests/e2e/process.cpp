#include "e2e/process.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <stdexcept>

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace lockstep::testing {
namespace {

void set(std::vector<std::string>& environment, const std::string& name, const std::string& value) {
  std::erase_if(environment, [&](const std::string& entry) { return entry.starts_with(name + "="); });
  if (!value.empty()) environment.push_back(name + "=" + value);
}

/// Returns this process's environment without variables that lead to the user's data, the internet or the terminal.
std::vector<std::string> make_environment(const ProcessOptions& options) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  for (const char* name :
       {"LOCKSTEP_DATA", "NO_COLOR", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "https_proxy", "HTTPS_PROXY", "LC_ALL"}) {
    set(environment, name, "");
  }
  set(environment, "LOCKSTEP_MNIST_MIRROR", "http://127.0.0.1:1/");
  set(environment, "XDG_CACHE_HOME", "/nonexistent/cache");
  set(environment, "TERM", "xterm");
  set(environment, "LANG", "C.UTF-8");
  for (const auto& [name, value] : options.environment) set(environment, name, value);
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

struct Channel {
  int reading = -1;
  int writing = -1;
};

Channel make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
  return {ends[0], ends[1]};
}

Channel make_terminal() {
  Channel channel;
  winsize size{};
  size.ws_col = 100;
  size.ws_row = 30;
  if (openpty(&channel.reading, &channel.writing, nullptr, nullptr, &size) != 0) {
    throw std::runtime_error("cannot make a terminal");
  }
  fcntl(channel.reading, F_SETFD, FD_CLOEXEC);
  fcntl(channel.writing, F_SETFD, FD_CLOEXEC);
  return channel;
}

Channel make_output(const ProcessOptions& options) {
  if (!options.output_file.empty()) {
    return {-1, open(options.output_file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666)};
  }
  return options.terminal ? make_terminal() : make_pipe();
}

/// Runs between fork and exec: makes only calls that are allowed there.
[[noreturn]] void become(char* const* argv, char* const* envp, int out, int err, const ProcessOptions& options) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a killed test leaves no training processes behind
  const int nothing = open("/dev/null", O_RDONLY);
  const bool ready = dup2(nothing, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
                     dup2(err, STDERR_FILENO) >= 0 && chdir(options.folder.c_str()) == 0;
  if (!ready) _exit(125);
  const auto set_limit = [](auto resource, uint64_t value) {
    const rlimit limit{value, value};
    if (value > 0) setrlimit(resource, &limit);
  };
  set_limit(RLIMIT_FSIZE, options.file_size_limit);
  set_limit(RLIMIT_NOFILE, options.open_files);
  set_limit(RLIMIT_AS, options.address_space);
  execve(argv[0], argv, envp);
  _exit(126);
}

/// Returns false at the end of the stream.
bool append_from(int fd, std::string& text) {
  std::array<char, 65536> buffer{};
  const ssize_t count = read(fd, buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) return false;  // the end of a terminal is EIO
  text.append(buffer.data(), static_cast<size_t>(count));
  return true;
}

}  // namespace

Process::Process(const std::string& program, const std::vector<std::string>& arguments, const ProcessOptions& options) {
  start(program, arguments, options);
}

void Process::start(const std::string& program, const std::vector<std::string>& arguments,
                    const ProcessOptions& options) {
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> environment = make_environment(options);
  const std::vector<char*> argv = pointers(words);
  const std::vector<char*> envp = pointers(environment);
  const Channel out = make_output(options);
  const Channel err = make_pipe();
  pid_ = fork();
  if (pid_ == 0) become(argv.data(), envp.data(), out.writing, err.writing, options);
  close(out.writing);
  close(err.writing);
  out_ = out.reading;
  err_ = err.reading;
  if (pid_ < 0) throw std::runtime_error("cannot fork");
}

Process::~Process() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close_output();
  if (err_ >= 0) close(err_);
}

void Process::signal(int number) const { kill(pid_, number); }

double cpu_seconds(pid_t process) {
  clockid_t clock{};
  timespec used{};
  if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

void Process::close_output() {
  if (out_ >= 0) close(out_);
  out_ = -1;
}

bool Process::read_some() {
  std::array<pollfd, 2> fds{pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}};
  if (out_ < 0 && err_ < 0) return false;
  if (poll(fds.data(), fds.size(), 50) <= 0) return true;
  if (fds[0].revents != 0 && !append_from(out_, ended_.out)) close_output();
  if (fds[1].revents != 0 && !append_from(err_, ended_.err)) {
    close(err_);
    err_ = -1;
  }
  return true;
}

bool Process::wait_for(const std::string& text, Seconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (ended_.out.find(text) == std::string::npos) {
    if (std::chrono::steady_clock::now() > deadline || !read_some()) return false;
  }
  return true;
}

bool Process::has_said(const std::string& text) {
  read_some();
  return ended_.out.find(text) != std::string::npos || ended_.err.find(text) != std::string::npos;
}

Ended Process::finish(Seconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (read_some()) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw std::runtime_error("the program did not end in time; so far:\n" + ended_.out + ended_.err);
    }
  }
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  ended_.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended_;
}

std::string program_path() {
  const char* path = std::getenv("LOCKSTEP_PROGRAM");  // NOLINT(concurrency-mt-unsafe)
  if (path == nullptr) throw std::runtime_error("LOCKSTEP_PROGRAM is not set; run the tests with ctest");
  return path;
}

Ended lockstep(const std::vector<std::string>& arguments, const ProcessOptions& options) {
  return Process(program_path(), arguments, options).finish();
}

}  // namespace lockstep::testing
