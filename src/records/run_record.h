// A run's folder as it can be read now: while it trains, after it ended, was killed, or was written by an older
// version. What is missing is not known (NaN, empty); what is damaged is read as far as it goes and named in
// `warnings`. Nothing is written and no lock is kept. Plain values; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "records/csv_table.h"
#include "records/run_summary.h"

namespace lockstep::records {

/// What one process left: the chief, or the only one, in the run's folder itself, the others in folders of their own.
struct RoleRecord {
  std::string role;    ///< "worker:0", "ps:1", "evaluator:0"; "process" where there is no cluster
  std::string folder;  ///< its path
  std::string host;
  bool has_summary = false;
  RunSummary summary;
  CsvTable steps;
  CsvTable evals;
  CsvTable monitor;
  CsvTable phase_log;
  /// From the summary, or added up from phases.csv; percentiles are then those of its lines' means.
  std::vector<PhaseTotals> phases;
  std::map<std::string, ResourceUse, std::less<>> resources;  ///< from the summary, or from monitor.csv
  double samples = 0;                                         ///< that `resources` are made of

  [[nodiscard]] bool trains() const { return !role.starts_with("ps:") && !role.starts_with("evaluator:"); }
  [[nodiscard]] bool serves() const { return role.starts_with("ps:"); }
  /// 0 where it took none.
  [[nodiscard]] double phase_seconds(std::string_view name) const;
  [[nodiscard]] double all_phase_seconds() const;
  [[nodiscard]] ResourceUse resource(std::string_view column) const;
  /// The most memory it held, in bytes.
  [[nodiscard]] double peak_memory() const;
};

enum class RunState : uint8_t {
  ended,    ///< there is a summary
  running,  ///< a process holds its lock
  broken    ///< no summary of what the logs have, and nobody there who would write one
};

struct RunRecord {
  std::string path;
  std::string name;  ///< the folder's
  RunState state = RunState::ended;
  bool went_on = false;  ///< it was resumed after its summary was written, whose results are then not taken
  std::vector<std::pair<std::string, std::string>> settings;  ///< of config.yaml, in its order; options as "options.x".
                                                              ///< Those of launch.yaml take their place
  size_t planned_workers = 0;                                 ///< of the cluster; 0: one process
  size_t planned_servers = 0;
  std::vector<RoleRecord> roles;  ///< the chief first, then workers, servers, evaluators by number
  std::map<std::string, Throttling, std::less<>> throttling;  ///< by role; empty without quotas
  std::vector<NodeRecord> nodes;                              ///< empty without --emulate
  std::vector<FaultRecord> faults;                            ///< of --faults, in the order of time
  std::vector<std::string> warnings;

  [[nodiscard]] const RoleRecord& chief() const { return roles.front(); }
  [[nodiscard]] const RunSummary& summary() const { return roles.front().summary; }
  [[nodiscard]] const RoleRecord* role(std::string_view name) const;
  /// The chief's row about a worker, or nullptr.
  [[nodiscard]] const WorkerRow* worker(std::string_view role) const;
  /// Empty where it is not there.
  [[nodiscard]] std::string setting(std::string_view key) const;
  [[nodiscard]] bool has_setting(std::string_view key) const;
  /// NaN where it is none, or not there.
  [[nodiscard]] double number_setting(std::string_view key) const;

  /// How many train together, at least 1.
  [[nodiscard]] size_t workers() const;
  [[nodiscard]] size_t servers() const;
  [[nodiscard]] bool all_reduce() const;
  /// Training ended by an error.
  [[nodiscard]] bool failed() const;
  /// Do they train within one process (--replicas)? Only the first of them records phases.
  [[nodiscard]] bool in_process() const;
  [[nodiscard]] bool has_evaluator() const;
  /// That a worker computes with; NaN where not known.
  [[nodiscard]] double threads() const;
  /// The evaluations of the chief, or of the evaluator in its place.
  [[nodiscard]] const CsvTable& evals() const;
  [[nodiscard]] std::string model() const;
  [[nodiscard]] std::string dataset() const;

  /// From the summary, or from as far as the logs go.
  [[nodiscard]] double steps() const;
  [[nodiscard]] double examples() const;
  [[nodiscard]] double seconds() const;
  [[nodiscard]] double examples_per_second() const;
  [[nodiscard]] double seconds_per_step() const;
  [[nodiscard]] double test_loss() const;
  [[nodiscard]] double test_accuracy() const;
  /// The mean over the last epoch; only a summary has it.
  [[nodiscard]] double train_loss() const;
};

/// Throws UsageError where the folder is no run.
RunRecord read_run(const std::string& path);

/// The folder of the run in `runs_dir` that was written to last. Throws UsageError where there is none.
std::string newest_run(const std::string& runs_dir);

}  // namespace lockstep::records
