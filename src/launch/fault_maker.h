// Makes scheduled faults (--faults) and records them with their times in the run's faults.jsonl. Signals only processes
// that it was told of. For one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "emulate/cluster.h"
#include "emulate/faults.h"
#include "launch/supervisor.h"

namespace lockstep::launch {

/// Throws UsageError for a fault of an unknown role or node. `nodes` is 0 without emulation.
void check_faults(const std::vector<emulate::Fault>& faults, const std::vector<std::string>& roles, size_t nodes);

/// Sends a signal to a role: SIGKILL, SIGSTOP or SIGCONT.
using SignalRole = std::function<void(const std::string& role, int number)>;

class FaultMaker {
 public:
  /// `cluster` may be null without nodes; otherwise it outlives this object.
  FaultMaker(const std::vector<emulate::Fault>& faults, emulate::EmulatedCluster* cluster);

  [[nodiscard]] bool empty() const { return actions_.empty(); }
  /// Records that a role was started or restarted.
  void started(const std::string& role, pid_t pid) { pids_[role] = pid; }
  /// Signals go this way instead of to the process of a role and its group.
  void signal_by(SignalRole signal) { signal_ = std::move(signal); }
  void ended(const std::string& role) {
    pids_.erase(role);
    held_.erase(role);
  }
  /// Starts the clock of the schedule.
  void begin();
  [[nodiscard]] bool begun() const { return begun_; }
  /// All roles were stopped for so long and continued: the schedule goes on where it was, and roles that a fault holds
  /// are stopped again. Faults are recorded with the time since the beginning, with that of the stop.
  void resumed(std::chrono::steady_clock::duration after);
  /// Makes the faults that are due and returns a line for each; appends the lines to `file`.
  std::vector<std::string> make_due(const std::string& file);

 private:
  using Clock = std::chrono::steady_clock;
  struct Action {
    double at = 0;
    emulate::Fault fault;
    bool end = false;
  };

  void send(const std::string& role, pid_t pid, int number) const;
  std::string make(const emulate::Fault& fault);
  std::string undo(const emulate::Fault& fault);

  std::vector<Action> actions_;  ///< ordered by time
  size_t next_ = 0;
  emulate::EmulatedCluster* cluster_;
  std::map<std::string, pid_t> pids_;     ///< processes of running roles
  std::map<std::string, pid_t> stopped_;  ///< stopped processes to be continued
  std::set<std::string> held_;            ///< roles that are stopped now
  SignalRole signal_;
  bool begun_ = false;
  Clock::time_point start_;
  Clock::duration paused_{};
};

/// Scheduled faults of the roles of a job, which it knows from their events. The schedule begins once all have started.
class ScheduledFaults {
 public:
  ScheduledFaults(const std::vector<emulate::Fault>& wanted, size_t roles, emulate::EmulatedCluster* cluster)
      : maker_(wanted, cluster), roles_(roles) {}

  [[nodiscard]] bool empty() const { return maker_.empty(); }
  void on_event(const RoleEvent& event);
  void signal_by(SignalRole signal) { maker_.signal_by(std::move(signal)); }
  std::vector<std::string> make_due(const std::string& file) { return maker_.make_due(file); }

 private:
  FaultMaker maker_;
  size_t roles_;
  size_t started_ = 0;
};

}  // namespace lockstep::launch
