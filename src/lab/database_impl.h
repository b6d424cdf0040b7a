// Parts of a lab's database that its writer and its reader share. Internal to the room; for one thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/database.h"
#include "lab/sqlite.h"

namespace lockstep::lab {

/// A run in the database.
struct KeptRow {
  int64_t id = 0;
  std::string key;
  std::string digest;
  std::string state;  ///< planned, done or failed; no run is running while the plan is compared
};

/// A run of a plan with its row in the database; nullptr: the run is new.
struct PlannedRow {
  const RunPlan* plan = nullptr;
  std::string digest;
  const KeptRow* row = nullptr;
};

/// Returns a JSON object of texts. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const Values& values);

class Database::Impl {
 public:
  Impl(const std::string& lab_dir, bool write);

  /// Returns the path as stored: relative to the lab if it lies inside, so that a lab can be moved.
  [[nodiscard]] std::string kept(const std::string& path) const;
  [[nodiscard]] std::string found(const std::string& path) const;
  [[nodiscard]] const Sqlite& db() const { return db_; }

  [[nodiscard]] int64_t run_id(int64_t experiment, const std::string& key) const;
  void clear(int64_t run) const;
  /// Adds what a run measured; it has nothing yet.
  void add_measured(int64_t run, const RunMeasured& measured) const;
  void set_state(int64_t run, RunState state, const std::string& reason) const;
  /// Plans the runs of an experiment. Runs outside `only` keep their results; nullptr: all runs are planned.
  void plan_runs(int64_t id, const Experiment& experiment, const std::vector<std::string>* only) const;
  [[nodiscard]] std::vector<KeptRow> kept_rows(int64_t experiment) const;
  /// Returns the row of each run of a plan: a row of the same training, otherwise one of the same key. Borrows `kept`.
  static std::vector<PlannedRow> matched(const Experiment& experiment, const std::vector<KeptRow>& kept);
  void read_measured(int64_t experiment, std::map<int64_t, RunMeasured>& all) const;
  [[nodiscard]] std::vector<RunResult> runs(int64_t experiment) const;

 private:
  void check_version(bool write) const;
  void free_keys(const std::vector<KeptRow>& kept, const std::vector<PlannedRow>& planned) const;
  void plan_run(int64_t experiment, const PlannedRow& run, int64_t place, bool chosen) const;

  std::string lab_dir_;
  Sqlite db_;
};

}  // namespace lockstep::lab
