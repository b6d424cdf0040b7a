// The runs that the page shows: the folders in the run directory and in the experiments of the lab. A run has an id
// that is looked up among those that are there; no path comes from outside. Folders and files that lead elsewhere by a
// link are left out. What was read is kept until its files change: a row of every run, the whole of those asked for
// last. Any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "records/run_record.h"

namespace lockstep::dash {

using RunPtr = std::shared_ptr<const records::RunRecord>;

struct RunPlace {
  std::string id;  ///< see run_id
  std::string path;
  std::string experiment;  ///< the folder of the experiment in the lab; else empty
};

/// The folder's name; of a run of the lab "EXPERIMENT~NAME". What has a ~ in its own name begins with one, so that no
/// two runs have the same.
std::string run_id(const std::string& experiment, const std::string& name);
/// The experiment's folder in an id; empty where it is none of the lab.
std::string experiment_of(const std::string& id);

/// What the list of runs shows of one.
struct RunRow {
  RunPlace place;
  records::RunState state = records::RunState::ended;
  double changed = 0;  ///< when its files were last written, seconds since 1970
  std::string json;    ///< as /api/runs gives it
};
using RowPtr = std::shared_ptr<const RunRow>;

class RunStore {
 public:
  RunStore(std::string runs_dir, std::string lab_dir);

  /// All runs, by id.
  std::vector<RowPtr> rows();
  /// Nothing where there is no run of that id (any more).
  RunPtr find(const std::string& id);
  /// Of all runs that are there, without reading them.
  [[nodiscard]] std::set<std::string> ids() const;
  /// Ids of runs that came, changed or went since the last call.
  std::vector<std::string> changes();

  /// The folder of an experiment in the lab, by its name; nothing where there is none or it leads elsewhere.
  [[nodiscard]] std::optional<std::string> experiment_folder(const std::string& name) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct KeptRow {
    uint64_t stamp = 0;
    Clock::time_point look_again;  ///< not before that
    uint64_t version = 0;
    RowPtr row;
  };
  struct KeptRun {
    std::string id;
    uint64_t stamp = 0;
    Clock::time_point read;
    RunPtr run;
  };

  [[nodiscard]] std::vector<RunPlace> places() const;
  void refresh() LOCKSTEP_REQUIRES(rows_mutex_);
  /// Also of runs that came and went between two looks, a page may show something.
  void forget_gone_runs() LOCKSTEP_REQUIRES(rows_mutex_);
  void read_row(const RunPlace& place, uint64_t stamp, double changed, KeptRow& kept) LOCKSTEP_REQUIRES(rows_mutex_);

  const std::string runs_dir_;
  const std::string lab_dir_;

  base::Mutex rows_mutex_;
  std::map<std::string, KeptRow> rows_ LOCKSTEP_GUARDED_BY(rows_mutex_);
  uint64_t version_ LOCKSTEP_GUARDED_BY(rows_mutex_) = 0;
  uint64_t told_ LOCKSTEP_GUARDED_BY(rows_mutex_) = 0;  ///< the version that `changes` has reached
  std::set<std::string> gone_ LOCKSTEP_GUARDED_BY(rows_mutex_);

  base::Mutex runs_mutex_;
  std::list<KeptRun> runs_ LOCKSTEP_GUARDED_BY(runs_mutex_);  ///< the one asked for last first
};

/// "ended", "running" or "broken".
std::string state_name(records::RunState state);

}  // namespace lockstep::dash
