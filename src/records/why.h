// Finds what limited a run: fits the model of a training to it (fit.h) and asks what a step would take if each thing in
// turn were free. Without files, clock or threads. Every sentence carries its numbers. For a run that is too short or
// too old, the diagnosis says so.
#pragma once

#include <string>
#include <vector>

#include "records/hardware.h"
#include "records/run_record.h"

namespace lockstep::records {

struct Evidence {
  std::string what;
  double value = kUnknown;  ///< shares from 0 to 1, times in seconds, CPU in percent of a core or of the node
  std::string text;         ///< the value as text
};

/// Something that a step spends time on, and what the step would take without it.
struct Cause {
  /// "network", "servers", "programs", "others" (waiting for workers), "data", "evaluation", "checkpoint", "cpu" (more
  /// threads of the run than cores), "threads", "quota", "batch" (what is the same at any batch), "compute", "rest",
  /// "memory", "unexplained".
  std::string cause = {};
  std::string who = {};    ///< the role or machine; may be empty
  double cost = 0;         ///< share of the training's time, 0 to 1; of a step where it makes no evaluations
  double step = kUnknown;  ///< seconds of a step without it
};

struct Diagnosis {
  /// That of the first cause; also "waiting" for old runs; "short" or "unknown" where nothing can be said.
  std::string cause;
  std::string headline;
  std::vector<std::string> sentences;
  std::vector<Evidence> evidence;
  std::vector<std::string> suggestions;
  std::vector<Cause> causes = {};  ///< in the order of their rank; empty without a model
  double step = kUnknown;          ///< recorded seconds of a step, without evaluations and checkpoints
  double aside = kUnknown;         ///< seconds of evaluations and checkpoints per step
  double unexplained = kUnknown;   ///< share of it that the model does not explain
};

Diagnosis diagnose(const RunRecord& run);

/// The time of one phase in two runs: seconds of worker time per example.
struct PhaseCost {
  std::string phase;
  double before = 0;
  double now = 0;
};

/// The cost of a run against a baseline, usually a run in one process.
struct Comparison {
  double speed_up = kUnknown;  ///< examples per second, relative to the baseline
  double more_workers = 1;     ///< workers, relative to the baseline
  Efficiency efficiency;       ///< speed-up per core, or per node
  std::string headline;
  std::vector<std::string> sentences;
  std::vector<PhaseCost> phases;  ///< the largest loss first; empty if one of the runs recorded none
};

Comparison compare(const RunRecord& run, const RunRecord& baseline);

}  // namespace lockstep::records
