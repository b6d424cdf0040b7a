// The parts of a lab's database that its writing and its reading half share. Internal to the room; for one thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lab/database.h"
#include "lab/sqlite.h"

namespace lockstep::lab {

class Database::Impl {
 public:
  Impl(const std::string& lab_dir, bool write);

  /// As it is kept: relative to the lab where it lies within, so that a lab can be moved.
  [[nodiscard]] std::string kept(const std::string& path) const;
  [[nodiscard]] std::string found(const std::string& path) const;
  [[nodiscard]] const Sqlite& db() const { return db_; }

  [[nodiscard]] int64_t run_id(int64_t experiment, const std::string& key) const;
  void clear(int64_t run) const;
  void set_state(int64_t run, RunState state, const std::string& reason) const;
  void plan_run(int64_t experiment, const RunPlan& plan, int64_t place) const;
  void read_measured(int64_t experiment, std::map<int64_t, RunMeasured>& all) const;
  [[nodiscard]] std::vector<RunResult> runs(int64_t experiment) const;

 private:
  void check_version(bool write) const;

  std::string lab_dir_;
  Sqlite db_;
};

}  // namespace lockstep::lab
