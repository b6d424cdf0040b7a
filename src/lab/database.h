// The lab's records: one SQLite file, LAB/lab.sqlite, with a write-ahead log. A kill at any moment loses at most the
// run in progress, and readers never wait (docs/formats.md has the schema). One writer at a time: a second lab on the
// same folder and experiment is refused with one line. A Database belongs to one thread. Damaged files and files of a
// newer version throw DataError "FILE: ...".
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "lab/results.h"

namespace lockstep::lab {

struct ExperimentRow {
  int64_t id = 0;
  std::string name;  ///< "study-3"
  std::string scale;
  std::string title;
  std::string folder;
  double started = 0;
  double ended = 0;
  int planned = 0;  ///< runs in this state; so are the next three
  int running = 0;
  int done = 0;
  int failed = 0;
};

class Database {
 public:
  enum class Access : uint8_t { read, write };
  /// With write access, creates a missing file.
  Database(const std::string& lab_dir, Access access);
  ~Database();
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;

  [[nodiscard]] std::vector<ExperimentRow> experiments() const;
  /// Throws UsageError, which lists the existing experiments, if there is none of that name.
  [[nodiscard]] ExperimentRow find(const std::string& name, const std::string& scale) const;
  [[nodiscard]] Results results(int64_t experiment) const;

  /// Returns the keys of the experiment's runs whose training is done, under whatever key it was made.
  [[nodiscard]] std::set<std::string> finished(const Experiment& experiment) const;
  /// Returns the folder of a run: `wanted`, unless another run has it.
  [[nodiscard]] std::string folder_for(int64_t experiment, const std::string& run_key, const std::string& wanted) const;
  /// Returns whether the folder belongs to a run of the lab.
  [[nodiscard]] bool has_folder(const std::string& folder) const;

  /// Adds the experiment, or the new parts of its plan; finished runs stay. Removes the results of a run whose training
  /// has changed, if its key is in `only` (nullptr: any key). Returns the experiment's id.
  int64_t plan(const Experiment& experiment, const std::string& folder, const Environment& environment,
               const std::string& command, const std::vector<std::string>* only = nullptr);
  /// Marks a run as running. A finished run keeps its result until it finishes again.
  void started(int64_t experiment, const std::string& run_key, const std::string& folder);
  /// Stores a result. `folder` and `seconds` are given for a run that was made again in another folder.
  void done(int64_t experiment, const std::string& run_key, const RunMeasured& measured, const std::string& folder = "",
            double seconds = 0);
  /// Replaces what a finished run measured.
  void measured(int64_t experiment, const std::string& run_key, const RunMeasured& measured);
  void moved(int64_t experiment, const std::string& run_key, const std::string& folder);
  void failed(int64_t experiment, const std::string& run_key, const std::string& reason);
  /// Resets a run to the state before its start.
  void forget(int64_t experiment, const std::string& run_key);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns whether the folder holds a lab's database.
bool is_lab(const std::string& lab_dir);

}  // namespace lockstep::lab
