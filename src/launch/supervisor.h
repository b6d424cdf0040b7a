// Runs the roles of a job as processes and keeps them running. Starts all at once, restarts dead ones, and kills those
// that are stopped and not continued. Ends the job when training has ended, when a role cannot be kept alive, or at the
// user's request, and leaves no process behind. Ctrl-Z (SIGTSTP) stops all roles together with this process. It knows
// nothing of training: a role that exits with 0 is done. Everything happens in `run`, on the calling thread, which must
// live as long as the program (child_process.h); events are reported there.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/spec.h"
#include "launch/role_failure.h"
#include "process/child_process.h"

namespace lockstep::launch {

/// Exit code of a role that would fail again in the same way: ends the whole job.
constexpr int kHopelessCode = 3;

struct RoleProcess {
  cluster::Task task;
  process::Command command;
  /// Runs under a wrapper on another host, which takes signals as words on its standard input (under_launcher.h).
  bool remote = false;
  std::string host = {};  ///< host of a remote role, as used by ssh
  /// Name of a process that starts all roles itself: "mpirun". Empty: it runs `task`.
  std::string group = {};
  int interrupt = SIGINT;  ///< signal that asks it to stop at the current step

  [[nodiscard]] std::string name() const { return group.empty() ? task.str() : group; }
};

struct RoleEvent {
  enum class Kind : uint8_t {
    started,    ///< first start; pid
    restarted,  ///< pid, restarts
    out_line,   ///< text
    err_line,   ///< text
    died,       ///< text: the cause, and what follows
    ended,      ///< with exit code 0, or on request
    message,    ///< text, about the role
    tick        ///< some time has passed; not about a role
  };
  Kind kind = Kind::tick;
  cluster::Task task = {};  ///< meaningless if there is a group
  std::string text = {};
  pid_t pid = -1;
  int restarts = 0;
  std::string group = {};  ///< RoleProcess::group
  bool remote = false;
};

struct SupervisorOptions {
  using Time = std::chrono::milliseconds;
  /// Restarts of each role. None is left if a restart cannot help: a limit of the process was reached; the same fault
  /// of a file or disk has occurred three times, in one role or several, without a newer checkpoint in between; or a
  /// role that reports no fault fails by itself three times in a row, quickly and with the same text.
  int restarts = 10;
  Time stopped{5000};        ///< time after which a stopped role is killed
  Time finish{30'000};       ///< for the servers, after the end of training
  Time finish_member{5000};  ///< for workers, after the end of training: the results are written
  Time finish_last{2000};    ///< for the servers, once no other role is left
  Time finish_evaluator{600'000};
  Time interrupt{30'000};      ///< for all, after Ctrl-C
  Time terminate{10'000};      ///< from SIGTERM to SIGKILL
  Time first_backoff{100};     ///< before the second restart after quick deaths in a row; doubles up to 5 s
  Time first_reconnect{1000};  ///< before the next attempt to reach a host; then four times that
  Time quick_death{5000};      ///< longest life that counts as quick
  Time error_kept{300};  ///< time to keep a line of standard error, which may be the reason why a role is about to end
  Time tick{1000};       ///< longest time between two tick events
  int signals = -1;      ///< CaughtSignals::fd() if interrupts are handled; -1: none
  /// Members (the chief and the workers) that are enough to go on. A member that cannot be kept alive is left out, and
  /// training has ended when any member ends with success. 0: all are needed, and training ends with the chief, which
  /// leaves last.
  int enough_members = 0;
  /// Returns the answer to a line of a role's standard output, for its standard input; nothing if it is no question.
  std::function<std::optional<std::string>(const std::string& line)> answer = {};
};

struct JobOutcome {
  int code = 0;                             ///< 0, 1, 2 (wrong usage of a role) or 128 + the interrupting signal
  std::optional<RoleFailure> failure = {};  ///< set if the job failed: the role and one line about it

  /// Returns the line; empty if the job did not fail.
  [[nodiscard]] std::string error() const { return failure ? failure->text : ""; }
};

class Supervisor {
 public:
  using Callback = std::function<void(const RoleEvent& event)>;

  Supervisor(std::vector<RoleProcess> roles, const SupervisorOptions& options, Callback callback);
  /// Kills all remaining processes.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Runs until all roles have ended. Throws the callback's exceptions; then no process is left either.
  JobOutcome run();
  /// Sends SIGKILL, SIGSTOP or SIGCONT to a role if it runs, on whatever host. For the callback.
  void signal(const cluster::Task& task, int number);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::launch
