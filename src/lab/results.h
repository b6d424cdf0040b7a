// The results of an experiment so far: its runs with their settings and measured values. Read from the lab's database
// (database.h). The series of a run (steps, evaluations, monitor) stay in its folder, for records::read_run. Plain
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
  std::string folder;  ///< folder of the run; may be gone
  double started = 0;  ///< seconds since 1970; 0: never
  double ended = 0;
  RunMeasured measured;

  /// Returns a setting, a tag, "label", "group" or "repeat" as text; empty for other names or without a value.
  [[nodiscard]] std::string text(std::string_view field) const;
  /// Returns a measured value, or a setting as a number; NaN if it is neither.
  [[nodiscard]] double number(std::string_view field) const;
};

/// Returns whether the filter selects a run; values are compared as numbers if both are numbers. Conditions on its
/// workers and machines do not count.
bool passes(const RunResult& run, const Filter& filter);
/// Returns the value of a field that the run was given, or the default of a setting.
std::string given_or_default(const RunResult& run, const std::string& field);

/// The machine and program of the measurements.
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
  Experiment experiment;        ///< the experiment as it was run
  std::string folder;           ///< folder of the experiment, with report, logs and runs
  std::vector<RunResult> runs;  ///< in the order of the plan
  Environment environment;
  double started = 0;
  double ended = 0;     ///< end of the last run that ended
  std::string command;  ///< command that runs it again
};

/// Returns the log file of the run's output; empty if it was never started.
std::string log_of(const Results& results, const RunResult& run);
/// Returns how often its roles were restarted. The setting of the same name limits that number.
int restarts(const RunResult& run);

}  // namespace lockstep::lab
