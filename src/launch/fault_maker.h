// Makes scheduled faults (--faults) and records them with their times in the run's faults.jsonl. Signals only processes
// that it was told of. For one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "emulate/cluster.h"
#include "emulate/faults.h"

namespace lockstep::launch {

/// Throws UsageError for a fault of an unknown role or node. `nodes` is 0 without emulation.
void check_faults(const std::vector<emulate::Fault>& faults, const std::vector<std::string>& roles, size_t nodes);

class FaultMaker {
 public:
  /// `cluster` may be null without nodes; otherwise it outlives this object.
  FaultMaker(const std::vector<emulate::Fault>& faults, emulate::EmulatedCluster* cluster);

  [[nodiscard]] bool empty() const { return actions_.empty(); }
  /// Records that a role was started or restarted.
  void started(const std::string& role, pid_t pid) { pids_[role] = pid; }
  void ended(const std::string& role) { pids_.erase(role); }
  /// Starts the clock of the schedule.
  void begin();
  [[nodiscard]] bool begun() const { return begun_; }
  /// Makes the faults that are due and returns a line for each; appends the lines to `file`.
  std::vector<std::string> make_due(const std::string& file);

 private:
  using Clock = std::chrono::steady_clock;
  struct Action {
    double at = 0;
    emulate::Fault fault;
    bool end = false;
  };

  std::string make(const emulate::Fault& fault);
  std::string undo(const emulate::Fault& fault);

  std::vector<Action> actions_;  ///< ordered by time
  size_t next_ = 0;
  emulate::EmulatedCluster* cluster_;
  std::map<std::string, pid_t> pids_;     ///< processes of running roles
  std::map<std::string, pid_t> stopped_;  ///< stopped processes to be continued
  bool begun_ = false;
  Clock::time_point start_;
};

}  // namespace lockstep::launch
