// The lab's records: one SQLite file, LAB/lab.sqlite, with write-ahead log, so that a kill at any moment loses at most
// the run under way and readers never wait (docs/formats.md has the schema). One writer at a time: a second lab on the
// same folder and experiment is refused with a line. A Database belongs to one thread. Damaged files and those of a
// newer version throw DataError "FILE: ...".
#pragma once

#include <cstdint>
#include <memory>
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

  /// Adds it, or what is new in its plan; what is finished stays. Gives its id.
  int64_t plan(const Experiment& experiment, const std::string& folder, const Environment& environment,
               const std::string& command);
  void started(int64_t experiment, const std::string& run_key, const std::string& folder);
  void done(int64_t experiment, const std::string& run_key, const RunMeasured& measured);
  void failed(int64_t experiment, const std::string& run_key, const std::string& reason);
  /// It is as if it had never been started.
  void forget(int64_t experiment, const std::string& run_key);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether the folder holds a lab's database.
bool is_lab(const std::string& lab_dir);

}  // namespace lockstep::lab
