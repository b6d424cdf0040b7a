// The folder of a run, read at any time: while it trains, after it ended or was killed, also one written by an older
// version. Missing values are unknown (NaN, empty). Damaged files are read as far as possible and named in `warnings`.
// Reading writes nothing and keeps no lock. Plain values; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "records/csv_table.h"
#include "records/run_labels.h"
#include "records/run_summary.h"

namespace lockstep::records {

/// The files of one process. The chief's, or those of a single process, are in the run's own folder, the others in
/// subfolders.
struct RoleRecord {
  std::string role;    ///< "worker:0", "ps:1", "evaluator:0"; "process" without a cluster
  std::string folder;  ///< path of its folder
  std::string host;
  bool has_summary = false;
  RunSummary summary;
  CsvTable steps;
  CsvTable evals;
  CsvTable monitor;
  CsvTable phase_log;
  /// Phases of the summary, otherwise added up from phases.csv. A percentile is then taken over the means of its lines.
  std::vector<PhaseTotals> phases;
  std::map<std::string, ResourceUse, std::less<>> resources;  ///< from the summary, or from monitor.csv
  double samples = 0;                                         ///< number of samples behind `resources`

  [[nodiscard]] bool trains() const { return !role.starts_with("ps:") && !role.starts_with("evaluator:"); }
  [[nodiscard]] bool serves() const { return role.starts_with("ps:"); }
  /// Returns 0 if the phase took no time.
  [[nodiscard]] double phase_seconds(std::string_view name) const;
  [[nodiscard]] double all_phase_seconds() const;
  [[nodiscard]] ResourceUse resource(std::string_view column) const;
  /// Returns the largest memory use, in bytes.
  [[nodiscard]] double peak_memory() const;
};

enum class RunState : uint8_t {
  ended,    ///< it has a summary
  running,  ///< a process holds its lock
  broken    ///< no summary covers the logs, and no process holds the lock
};

struct RunRecord {
  std::string path;
  std::string name;  ///< name of the folder
  RunState state = RunState::ended;
  bool went_on = false;  ///< it was resumed after its summary was written; the summary's results are not used
  std::vector<std::pair<std::string, std::string>> settings;  ///< from config.yaml, in its order; options as
                                                              ///< "options.x". Settings in launch.yaml replace them
  size_t planned_workers = 0;                                 ///< workers of the cluster; 0: one process
  size_t planned_servers = 0;
  std::vector<RoleRecord> roles;  ///< the chief first, then workers, servers and evaluators by number
  std::map<std::string, Throttling, std::less<>> throttling;  ///< by role; empty without quotas
  std::vector<NodeRecord> nodes;                              ///< empty without --emulate
  std::vector<FaultRecord> faults;                            ///< from --faults, by time
  RunLabels labels;
  std::vector<std::string> warnings;

  [[nodiscard]] const RoleRecord& chief() const { return roles.front(); }
  [[nodiscard]] const RunSummary& summary() const { return roles.front().summary; }
  [[nodiscard]] const RoleRecord* role(std::string_view name) const;
  /// Returns the chief's row about a worker, or nullptr.
  [[nodiscard]] const WorkerRow* worker(std::string_view role) const;
  /// Returns the setting's text; empty if there is none.
  [[nodiscard]] std::string setting(std::string_view key) const;
  [[nodiscard]] bool has_setting(std::string_view key) const;
  /// Returns the setting as a number; NaN if it is not set or not a number.
  [[nodiscard]] double number_setting(std::string_view key) const;

  /// Returns how many workers train together, at least 1.
  [[nodiscard]] size_t workers() const;
  [[nodiscard]] size_t servers() const;
  [[nodiscard]] bool all_reduce() const;
  /// Returns whether an error ended the training.
  [[nodiscard]] bool failed() const;
  /// Returns whether the workers are replicas in one process (--replicas). Only the first of them records phases.
  [[nodiscard]] bool in_process() const;
  [[nodiscard]] bool has_evaluator() const;
  /// Returns the number of threads that a worker computes with; NaN if unknown.
  [[nodiscard]] double threads() const;
  /// Returns the evaluations of the chief, or of the evaluator if there is one.
  [[nodiscard]] const CsvTable& evals() const;
  [[nodiscard]] std::string model() const;
  [[nodiscard]] std::string dataset() const;

  /// Returns the steps in the summary, or in the logs so far.
  [[nodiscard]] double steps() const;
  [[nodiscard]] double examples() const;
  [[nodiscard]] double seconds() const;
  [[nodiscard]] double examples_per_second() const;
  [[nodiscard]] double seconds_per_step() const;
  [[nodiscard]] double test_loss() const;
  [[nodiscard]] double test_accuracy() const;
  /// Returns the mean over the last epoch; only a summary has it.
  [[nodiscard]] double train_loss() const;
};

/// Throws UsageError if the folder is not a run.
RunRecord read_run(const std::string& path);

/// Returns the folder in `runs_dir` that was written to last. Throws UsageError if there is no run.
std::string newest_run(const std::string& runs_dir);

}  // namespace lockstep::records
