// The machines of a run for its model: nodes, quotas, links, other programs, and which role is where. Internal to this
// room.
#pragma once

#include <vector>

#include "records/fit.h"
#include "records/why_facts.h"

namespace lockstep::records {

struct MachineNotes {
  std::vector<double> pace;  ///< by worker: progress of its threads per second of computing, 0 to 1
  bool limited = false;      ///< nodes have quotas
  bool busy = false;         ///< threads wait for cores: other programs, or more threads than cores
  bool separate = false;     ///< roles are on several hosts whose links are not known
};

/// Sets nodes, workers, servers and the strategy of the fit's training.
MachineNotes set_machines(const RunRecord& run, const RunFacts& facts, Fit& fit);

}  // namespace lockstep::records
