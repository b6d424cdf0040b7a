// Runs the roles of a job as processes and keeps them running: starts all at once, starts again what dies, kills what
// is stopped and not continued, ends the job when the training has ended, when a role cannot be kept alive or when the
// user says so, and leaves nobody behind. It knows nothing of training: a role that exits with 0 is done. Everything
// happens in `run`, in the calling thread, which must live as long as the program (process.h); events are told there.
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

/// How a role ends that would fail in the same way again: with it the whole job.
constexpr int kHopelessCode = 3;

struct RoleProcess {
  cluster::Task task;
  process::Command command;
  /// It is run by a wrapper on another host, which takes signals as words on its standard input (under_launcher.h).
  bool remote = false;
  std::string host = {};  ///< of a remote one, as it is connected to
  /// It starts all roles of the job itself; this is what it is called: "mpirun". Empty: it is its task.
  std::string group = {};
  int interrupt = SIGINT;  ///< asks it to stop where it is

  [[nodiscard]] std::string name() const { return group.empty() ? task.str() : group; }
};

struct RoleEvent {
  enum class Kind : uint8_t {
    started,    ///< for the first time; pid
    restarted,  ///< pid, restarts
    out_line,   ///< text
    err_line,   ///< text
    died,       ///< text: of what, and what follows
    ended,      ///< with exit code 0, or because it was asked to
    message,    ///< text, about the role
    tick        ///< some time has passed; of no role
  };
  Kind kind = Kind::tick;
  cluster::Task task = {};  ///< meaningless where there is a group
  std::string text = {};
  pid_t pid = -1;
  int restarts = 0;
  std::string group = {};  ///< RoleProcess::group
};

struct SupervisorOptions {
  using Time = std::chrono::milliseconds;
  /// Restarts of each role. None is left where a restart cannot help: a limit of the process was reached; the same
  /// fault of a file or disk has come three times, to one role or several, without a newer checkpoint in between; or a
  /// role that reports no fault fails by itself three times in a row, quickly and with the same words.
  int restarts = 10;
  Time stopped{5000};        ///< a role that is stopped this long is killed
  Time finish{30'000};       ///< after the end of training, for the servers
  Time finish_member{5000};  ///< the same for workers: what counts is written
  Time finish_last{2000};    ///< for the servers, once nobody is left whom they may wait for
  Time finish_evaluator{600'000};
  Time interrupt{30'000};      ///< after Ctrl-C, for all
  Time terminate{10'000};      ///< after SIGTERM, before SIGKILL
  Time first_backoff{100};     ///< before the second restart after quick deaths in a row; doubles up to 5 s
  Time first_reconnect{1000};  ///< before a host that was not reached is tried again; then four times that
  Time quick_death{5000};      ///< a life shorter than this
  Time error_kept{300};        ///< a line of standard error may be the last word of a role that is about to end
  Time tick{1000};             ///< between events of that kind, at most
  int signals = -1;            ///< CaughtSignals::fd(), where interrupts are to be heeded
  /// Members (the chief and the workers) that are enough to go on with: one that cannot be kept alive is left out, and
  /// whoever ends well says that the training has ended. 0: all are needed, and the chief says so, who leaves last.
  int enough_members = 0;
};

struct JobOutcome {
  int code = 0;                             ///< 0, 1, 2 (wrong usage of a role) or 128 + the signal that interrupted
  std::optional<RoleFailure> failure = {};  ///< where the job failed: its role, with one line about it

  /// The line; empty where the job did not fail.
  [[nodiscard]] std::string error() const { return failure ? failure->text : ""; }
};

class Supervisor {
 public:
  using Callback = std::function<void(const RoleEvent& event)>;

  Supervisor(std::vector<RoleProcess> roles, const SupervisorOptions& options, Callback callback);
  /// Kills whoever is left.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  /// Until all have ended. Throws what the callback throws; then nobody is left either.
  JobOutcome run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::launch
