// Makes faults (--faults) when their time has come, and keeps in the run's faults.jsonl what was done when. Signals go
// to processes that its owner tells of. For one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "emulate/cluster.h"
#include "emulate/faults.h"

namespace lockstep::launch {

/// Throws UsageError for a fault of a role or a node that is not there. 0 nodes: nothing is emulated.
void check_faults(const std::vector<emulate::Fault>& faults, const std::vector<std::string>& roles, size_t nodes);

class FaultMaker {
 public:
  /// `cluster` may be null where there are no nodes; otherwise it outlives this.
  FaultMaker(const std::vector<emulate::Fault>& faults, emulate::EmulatedCluster* cluster);

  [[nodiscard]] bool empty() const { return actions_.empty(); }
  /// A role was started, for the first time or again.
  void started(const std::string& role, pid_t pid) { pids_[role] = pid; }
  void ended(const std::string& role) { pids_.erase(role); }
  /// Time counts from here.
  void begin();
  [[nodiscard]] bool begun() const { return begun_; }
  /// Does what is due and says so, a line each; the lines are kept in that file.
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

  std::vector<Action> actions_;  ///< in the order of time
  size_t next_ = 0;
  emulate::EmulatedCluster* cluster_;
  std::map<std::string, pid_t> pids_;     ///< of roles that run
  std::map<std::string, pid_t> stopped_;  ///< that are to go on
  bool begun_ = false;
  Clock::time_point start_;
};

}  // namespace lockstep::launch
