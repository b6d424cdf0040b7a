// The hardware that a run's workers used, and efficiency relative to a baseline: per core, or per node where runs are
// spread over nodes of one size. Free functions; any thread.
#pragma once

#include <string>

#include "records/run_record.h"

namespace lockstep::records {

struct Hardware {
  double cores = kUnknown;       ///< cores that the workers' threads can use; unknown in old or broken runs
  double nodes = 1;              ///< nodes with a worker
  bool spread = false;           ///< nodes are emulated, or several hosts
  double node_cores = kUnknown;  ///< cores of each of these nodes; unknown if they differ
};

Hardware hardware_of(const RunRecord& run);

/// Speed-up over the ratio of the hardware.
struct Efficiency {
  double value = kUnknown;
  std::string unit = "worker";  ///< "core", "node", or "worker" if the cores are not known
  double now = kUnknown;        ///< number of units of the run, and of the baseline
  double before = kUnknown;
};

Efficiency efficiency_of(const RunRecord& run, const RunRecord& baseline);

/// Returns "2 cores against 1".
std::string units_text(const Efficiency& efficiency);

}  // namespace lockstep::records
