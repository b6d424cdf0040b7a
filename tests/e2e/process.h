// Runs the real program as a person or a script would: with pipes or a terminal, signals, limits.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::testing {

struct ProcessOptions {
  std::string folder = ".";                                           ///< working folder
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< on top of the tests' own; "" unsets
  bool terminal = false;         ///< standard output is a terminal, 100 columns wide
  uint64_t file_size_limit = 0;  ///< RLIMIT_FSIZE; 0: none
  uint64_t open_files = 0;       ///< RLIMIT_NOFILE, soft and hard; 0: as it is
  uint64_t address_space = 0;    ///< RLIMIT_AS, bytes; 0: as it is
  std::string output_file = {};  ///< standard output goes there instead
};

struct Ended {
  int code = -1;  ///< exit code, or 128 + the signal that ended it
  std::string out;
  std::string err;
};

/// Returns the processor time that a process has used so far; 0 if it does not exist.
double cpu_seconds(pid_t process);

class Process {
 public:
  using Seconds = std::chrono::seconds;

  Process(const std::string& program, const std::vector<std::string>& arguments, const ProcessOptions& options = {});
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();

  void signal(int number) const;
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Closes the reading end of standard output, as `head` does.
  void close_output();
  /// Reads until standard output holds `text`; returns false at its end or after `patience`.
  bool wait_for(const std::string& text, Seconds patience = Seconds(120));
  /// Reads available output for up to 50 ms; returns whether either stream holds `text` by now.
  bool has_said(const std::string& text);
  /// Waits for the end. Kills the process and throws after `patience`.
  Ended finish(Seconds patience = Seconds(240));

 private:
  void start(const std::string& program, const std::vector<std::string>& arguments, const ProcessOptions& options);
  /// Reads available output for up to 50 ms; returns false when both streams have ended.
  bool read_some();

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  Ended ended_;
};

/// Runs the program under test to its end.
Ended lockstep(const std::vector<std::string>& arguments, const ProcessOptions& options = {});
/// Returns its path, from LOCKSTEP_PROGRAM.
std::string program_path();

}  // namespace lockstep::testing
