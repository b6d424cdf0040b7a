// What limited a run: rules over what it recorded, without files, clock or threads. Every sentence carries its numbers;
// a run too short or too old for a judgement is told so.
#pragma once

#include <string>
#include <vector>

#include "records/run_record.h"

namespace lockstep::records {

struct Evidence {
  std::string what;
  double value = kUnknown;  ///< shares as 0 to 1, times in seconds, CPU in percent of a core or of the node
  std::string text;         ///< the value for people
};

struct Diagnosis {
  /// "compute", "data", "servers", "network", "exchange", "others", "batch", "aside", "rest", "cpu", "memory",
  /// "quota", "waiting"; "short" or "unknown" where nothing can be said.
  std::string cause;
  std::string headline;
  std::vector<std::string> sentences;
  std::vector<Evidence> evidence;
  std::vector<std::string> suggestions;
};

Diagnosis diagnose(const RunRecord& run);

/// Where the time of one phase went in two runs: seconds of workers' time for an example.
struct PhaseCost {
  std::string phase;
  double before = 0;
  double now = 0;
};

/// What a run cost against another, usually one of a single process.
struct Comparison {
  double speed_up = kUnknown;    ///< examples per second over the baseline's
  double more_workers = 1;       ///< workers over the baseline's
  double efficiency = kUnknown;  ///< speed-up for each of them
  std::string headline;
  std::vector<std::string> sentences;
  std::vector<PhaseCost> phases;  ///< the largest loss first; empty where one of them recorded none
};

Comparison compare(const RunRecord& run, const RunRecord& baseline);

}  // namespace lockstep::records
