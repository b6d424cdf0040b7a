// The lab's records: one SQLite file, LAB/lab.sqlite, with write-ahead log, so that a kill at any moment loses at most
// the run under way and readers never wait (docs/formats.md has the schema). One writer at a time: a second lab on the
// same folder and experiment is refused with a line. A Database belongs to one thread. Damaged files and those of a
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
  int planned = 0;  ///< runs, by state
  int running = 0;
  int done = 0;
  int failed = 0;
};

class Database {
 public:
  enum class Access : uint8_t { read, write };
  /// With write access the file is made where there is none.
  Database(const std::string& lab_dir, Access access);
  ~Database();
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;

  [[nodiscard]] std::vector<ExperimentRow> experiments() const;
  /// Throws UsageError that lists those there are.
  [[nodiscard]] ExperimentRow find(const std::string& name, const std::string& scale) const;
  [[nodiscard]] Results results(int64_t experiment) const;

  /// Keys of its runs that are done as it has them, under whatever key they were made.
  [[nodiscard]] std::set<std::string> finished(const Experiment& experiment) const;
  /// Where a run is, or is to be: `wanted`, unless that is another one's.
  [[nodiscard]] std::string folder_for(int64_t experiment, const std::string& run_key, const std::string& wanted) const;
  /// Whether a run of the lab is there.
  [[nodiscard]] bool has_folder(const std::string& folder) const;

  /// Adds it, or what is new in its plan; what is finished stays. Of a run that is another one now the results go, if
  /// its key is among `only` (nullptr: all). Gives its id.
  int64_t plan(const Experiment& experiment, const std::string& folder, const Environment& environment,
               const std::string& command, const std::vector<std::string>* only = nullptr);
  /// One that is done keeps what it has until it is done again.
  void started(int64_t experiment, const std::string& run_key, const std::string& folder);
  /// `folder` and `seconds`: of one that was made again, elsewhere.
  void done(int64_t experiment, const std::string& run_key, const RunMeasured& measured, const std::string& folder = "",
            double seconds = 0);
  void moved(int64_t experiment, const std::string& run_key, const std::string& folder);
  void failed(int64_t experiment, const std::string& run_key, const std::string& reason);
  /// It is as if it had not been started.
  void forget(int64_t experiment, const std::string& run_key);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether the folder holds a lab's database.
bool is_lab(const std::string& lab_dir);

}  // namespace lockstep::lab
