// The runs that the page shows: the folders in the run directory and in the lab's experiments. Runs are looked up by id
// among the known ones; no path comes from outside. Folders and files that a link leads elsewhere are left out. Results
// are kept until the files change: a row for every run, the whole record for those requested last. Any thread.
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
#include "records/run_values.h"

namespace lockstep::dash {

using RunPtr = std::shared_ptr<const records::RunRecord>;

struct RunPlace {
  std::string id;  ///< see run_id()
  std::string path;
  std::string experiment;  ///< folder of its experiment in the lab; empty outside the lab
};

/// Returns the run's id: the folder's name, for a run of the lab "EXPERIMENT~NAME". An id whose own name holds a ~
/// begins with one, so that no two runs share an id.
std::string run_id(const std::string& experiment, const std::string& name);
/// Returns the experiment's folder in an id; empty for a run outside the lab.
std::string experiment_of(const std::string& id);

/// A run's entry in the list of runs.
struct RunRow {
  RunPlace place;
  records::RunState state = records::RunState::ended;
  double changed = 0;         ///< time when its files were last written, seconds since 1970
  std::string json;           ///< its JSON for /api/runs
  records::RunValues values;  ///< for filters and chosen columns
};
using RowPtr = std::shared_ptr<const RunRow>;

class RunStore {
 public:
  RunStore(std::string runs_dir, std::string lab_dir);

  /// Returns all runs, by id.
  std::vector<RowPtr> rows();
  /// Returns nothing if there is no run of that id (any more).
  RunPtr find(const std::string& id);
  /// Returns the ids of all present runs, without reading them.
  [[nodiscard]] std::set<std::string> ids() const;
  /// Returns the ids of runs that came, changed or went since the last call.
  std::vector<std::string> changes();

  /// Returns the folder of an experiment in the lab, by its name; nothing if there is none or a link leads elsewhere.
  [[nodiscard]] std::optional<std::string> experiment_folder(const std::string& name) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct KeptRow {
    uint64_t stamp = 0;
    Clock::time_point look_again;  ///< earliest time of the next look
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
  /// Forgets runs that are gone, also those that came and went between two looks: a page may show something of them.
  void forget_gone_runs() LOCKSTEP_REQUIRES(rows_mutex_);
  void read_row(const RunPlace& place, uint64_t stamp, double changed, KeptRow& kept) LOCKSTEP_REQUIRES(rows_mutex_);

  const std::string runs_dir_;
  const std::string lab_dir_;

  base::Mutex rows_mutex_;
  std::map<std::string, KeptRow> rows_ LOCKSTEP_GUARDED_BY(rows_mutex_);
  uint64_t version_ LOCKSTEP_GUARDED_BY(rows_mutex_) = 0;
  uint64_t told_ LOCKSTEP_GUARDED_BY(rows_mutex_) = 0;  ///< version that `changes` has reported
  std::set<std::string> gone_ LOCKSTEP_GUARDED_BY(rows_mutex_);

  base::Mutex runs_mutex_;
  std::list<KeptRun> runs_ LOCKSTEP_GUARDED_BY(runs_mutex_);  ///< the most recently requested one first
};

}  // namespace lockstep::dash
