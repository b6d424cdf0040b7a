// One child process, started in its own process group. Its standard output and error are read as lines; its end is seen
// by a pidfd, so SIGCHLD is not needed. It cannot outlive its launcher: the system kills it (or sends it another
// signal) when the thread that started it ends, so start children from a thread that lives as long as the program.
// Processes left in its group are killed when it ends. A Child belongs to one thread.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "process/line_reader.h"

namespace lockstep::process {

struct Command {
  std::string program;            ///< path, or a name to find in PATH
  std::vector<std::string> argv;  ///< arguments, argv[0] included
  /// Added to this process's environment; an empty value removes the variable.
  std::vector<std::pair<std::string, std::string>> environment = {};
  bool own_output = true;       ///< true: its output is read here; false: it writes to this process's output
  int watchman = -1;            ///< Watchman::fd(); -1: none
  std::vector<int> cores = {};  ///< cores that it may run on; none: those of this process
  bool hold_stdin = false;      ///< true: its standard input is a pipe that closes with the Child; false: it is empty
  /// Runs in this process's group, with its terminal and standard input. Processes that it leaves behind stay.
  bool foreground = false;
  int death_signal = SIGKILL;  ///< that it gets from the system when this thread ends
  /// Joined before the program starts: a network namespace (a path), and control groups (files that a process joins by
  /// writing to them). Needs root.
  std::string network_namespace = {};
  std::vector<std::string> groups = {};
};

/// How a process ended.
struct Ending {
  bool signalled = false;
  int number = 0;  ///< the signal, or the exit code

  [[nodiscard]] bool ok() const { return !signalled && number == 0; }
  /// "exit code 3", "killed by signal 9 (Killed)"
  [[nodiscard]] std::string text() const;
  /// As a shell counts: the exit code, or 128 + the signal
  [[nodiscard]] int code() const { return signalled ? 128 + number : number; }
};

enum class Stream : uint8_t { out, err };

class Child {
 public:
  /// Starts the process. Throws IoError "cannot run PROGRAM: reason" if that fails.
  explicit Child(const Command& command);
  /// Kills the process and its group.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Descriptor to poll: readable when the process has ended.
  [[nodiscard]] int end_fd() const { return pidfd_.get(); }
  /// Descriptor to poll for reading; -1 once the stream has ended.
  [[nodiscard]] int fd(Stream stream) const { return pipe(stream).file.get(); }

  /// Reads the available bytes without waiting and passes on the complete lines.
  void read(Stream stream, const LineReader::Sink& sink);
  /// Reads the rest after the process has ended, including a last line without its end.
  void read_rest(Stream stream, const LineReader::Sink& sink);
  /// Writes to a held standard input as much as fits without waiting. A closed reader is not an error (SIGPIPE must be
  /// ignored).
  void write(std::string_view text);
  void close_input() { input_.reset(); }

  /// Sends a signal to the process and its group; in the foreground, to the process alone.
  void signal(int number) const;
  /// Returns how the process ended, once it has. Its group is then killed and its streams can be read to the end.
  std::optional<Ending> reap();
  /// True if it is stopped now (SIGSTOP, Ctrl-Z). A process under a debugger is not.
  [[nodiscard]] bool stopped() const;

 private:
  struct Pipe {
    base::FileHandle file;
    LineReader lines;
  };
  [[nodiscard]] const Pipe& pipe(Stream stream) const { return stream == Stream::out ? out_ : err_; }
  [[nodiscard]] Pipe& pipe(Stream stream) { return stream == Stream::out ? out_ : err_; }

  void tell_watchman() const;

  /// Target of signals, for kill().
  [[nodiscard]] pid_t target() const { return foreground_ ? pid_ : -pid_; }

  pid_t pid_ = -1;
  bool foreground_ = false;
  int watchman_ = -1;
  base::FileHandle pidfd_;
  base::FileHandle input_;
  Pipe out_;
  Pipe err_;
  std::optional<Ending> ending_;
};

}  // namespace lockstep::process
