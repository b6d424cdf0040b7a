// What an experiment has brought so far: its runs with what was set and what was measured. Read from the lab's database
// (database.h); the series of a run (steps, evaluations, monitor) stay in its folder, for records::read_run. Plain
// values; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/experiment.h"
#include "lab/fields.h"

namespace lockstep::lab {

enum class RunState : uint8_t { planned, running, done, failed };
std::string_view name(RunState state);

struct RunResult {
  RunPlan plan;
  RunState state = RunState::planned;
  std::string reason;  ///< why it failed; one line
  std::string folder;  ///< of the run; may be gone
  double started = 0;  ///< seconds since 1970; 0: never
  double ended = 0;
  RunMeasured measured;

  /// As text: a setting, a tag, "label", "group" or "repeat"; what is none of them, or not set, is empty.
  [[nodiscard]] std::string text(std::string_view field) const;
  /// Measured, or what was set as a number; NaN where it is neither.
  [[nodiscard]] double number(std::string_view field) const;
};

/// Whether a run passes; values are compared as numbers where both are.
bool passes(const RunResult& run, const Filter& filter);

/// Where it was measured.
struct Environment {
  std::string program;  ///< lockstep and its version
  std::string host;
  std::string system;  ///< "Debian GNU/Linux 12, Linux 6.1"
  std::string processor;
  int cores = 0;
  double memory_bytes = 0;
  std::string compiler;
};

struct Results {
  Experiment experiment;        ///< as it was run
  std::string folder;           ///< of the experiment: report, logs, runs
  std::vector<RunResult> runs;  ///< in the order of the plan
  Environment environment;
  double started = 0;
  double ended = 0;     ///< of the last run that ended
  std::string command;  ///< how to run it again
};

/// What the run printed; empty where it was never started.
std::string log_of(const Results& results, const RunResult& run);
/// How often its roles were started again; the setting of this name is how often they may be.
int restarts(const RunResult& run);

}  // namespace lockstep::lab
