// One child process: started with its own process group, its standard output and error read as lines, waited for by a
// pidfd, so that nobody needs SIGCHLD. It cannot outlive its launcher: the system kills it when the thread that started
// it
// ends, however that happens, so start children from a thread that lives as long as the program. What the child
// leaves in its group goes with it. A Child belongs to one thread.
#pragma once

#include <sys/types.h>

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
  std::string program;            ///< path, or a name looked for in PATH
  std::vector<std::string> argv;  ///< with argv[0]
  /// On top of this process's environment; an empty value removes the variable.
  std::vector<std::pair<std::string, std::string>> environment = {};
  bool own_output = true;       ///< its output is read here; otherwise it is this process's
  int watchman = -1;            ///< Watchman::fd(), where there is one
  std::vector<int> cores = {};  ///< that it may run on; none: those of this process
  bool hold_stdin = false;      ///< its standard input is a pipe that closes with the Child; otherwise it is empty
  /// It has this process's group, terminal and standard input, as if it were in its place; what it leaves stays.
  bool foreground = false;
  /// Where it is before it becomes the program: a network namespace (a path), and control groups (files that a process
  /// joins by writing there). Needs root.
  std::string network_namespace = {};
  std::vector<std::string> groups = {};
};

/// How a process ended.
struct Ending {
  bool signalled = false;
  int number = 0;  ///< the signal, or the exit code

  [[nodiscard]] bool ok() const { return !signalled && number == 0; }
  /// "exit code 3", "killed by signal 9 (Killed)".
  [[nodiscard]] std::string text() const;
  /// As a shell counts: the exit code, or 128 + the signal.
  [[nodiscard]] int code() const { return signalled ? 128 + number : number; }
};

enum class Stream : uint8_t { out, err };

class Child {
 public:
  /// Throws IoError "cannot run PROGRAM: reason" where it cannot be started.
  explicit Child(const Command& command);
  /// Kills what is left.
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// To poll: becomes readable when the process has ended.
  [[nodiscard]] int end_fd() const { return pidfd_.get(); }
  /// To poll for reading; -1 once the stream has ended.
  [[nodiscard]] int fd(Stream stream) const { return pipe(stream).file.get(); }

  /// Reads what there is without waiting and gives the complete lines.
  void read(Stream stream, const LineReader::Sink& sink);
  /// Of one that has ended: also a last line without its end.
  void read_rest(Stream stream, const LineReader::Sink& sink);
  /// Writes to a held standard input what fits without waiting; a reader that is gone is no error (SIGPIPE must be
  /// ignored).
  void write(std::string_view text);
  void close_input() { input_.reset(); }

  /// To the process and all in its group; of one in the foreground, to it alone.
  void signal(int number) const;
  /// How it ended, once it has; by then what it left in its group is killed and its streams can be read to the end.
  std::optional<Ending> reap();
  /// Whether it is stopped (SIGSTOP, Ctrl-Z) now. A process under a debugger is not.
  [[nodiscard]] bool stopped() const;

 private:
  struct Pipe {
    base::FileHandle file;
    LineReader lines;
  };
  [[nodiscard]] const Pipe& pipe(Stream stream) const { return stream == Stream::out ? out_ : err_; }
  [[nodiscard]] Pipe& pipe(Stream stream) { return stream == Stream::out ? out_ : err_; }

  void tell_watchman() const;

  /// Whom signals are for.
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
