// A run's folder: runs/<name>-<n>/ with config.yaml, steps.csv, evals.csv, summary.json and checkpoints/. Making one is
// atomic (mkdir is the claim, n counts up), so processes that start together get separate folders and nothing is ever
// overwritten. While a RunDirectory lives it holds the run's lock: no two processes train in one folder. If an
// exception destroys the RunDirectory that made the folder, the folder is removed, unless something in it is worth
// keeping.
#pragma once

#include <optional>
#include <string>

#include "base/file.h"
#include "settings/settings.h"

namespace lockstep::run {

class RunDirectory {
 public:
  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&& other) noexcept;
  ~RunDirectory();

  /// Makes the next free <runs_dir>/<name>-<n>. Throws IoError if it cannot be made.
  static RunDirectory create(const std::string& runs_dir, const std::string& name);
  /// Makes exactly this folder, which must not exist or must be empty; otherwise throws UsageError that names --resume.
  static RunDirectory create_at(const std::string& path);
  /// Makes an empty folder, the next free <runs_dir>/<name>-<n>, for the process that will make the run there; returns
  /// its path.
  static std::string reserve(const std::string& runs_dir, const std::string& name);
  /// Makes the folder that the settings name: run_dir, or runs_dir and name (or the model's name).
  static RunDirectory create_for(const settings::Settings& settings, const std::string& model_name);
  /// Opens an existing run: a path, or a name under `runs_dir`. Throws UsageError if there is none, IoError if it is in
  /// use.
  static RunDirectory open(const std::string& run, const std::string& runs_dir);

  /// Opens the folder of one role of a cluster, and makes it if needed. It has its own lock, because several roles and
  /// their launcher share a run. Throws IoError if another process has this role.
  static RunDirectory share(const std::string& path, const std::string& role);

  /// Removes the folder if this object made it and nothing in it is worth keeping (a log, a checkpoint, a server's
  /// state). Returns true if removed.
  bool discard_if_unused();
  /// Does the same for a folder that another process made and has left.
  static bool discard_if_unused(const std::string& path);
  /// Keeps the folder whatever is in it, because others know its name.
  void keep() { made_ = false; }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string config_file() const { return path_ + "/config.yaml"; }
  [[nodiscard]] std::string steps_file() const { return path_ + "/steps.csv"; }
  [[nodiscard]] std::string evals_file() const { return path_ + "/evals.csv"; }
  [[nodiscard]] std::string summary_file() const { return path_ + "/summary.json"; }
  [[nodiscard]] std::string checkpoints() const { return path_ + "/checkpoints"; }
  [[nodiscard]] std::string pictures() const { return path_ + "/pictures"; }

 private:
  RunDirectory(std::string path, base::LockFile lock, bool made = false);

  std::string path_;
  base::LockFile lock_;
  bool made_;       ///< made by this object; false once another process uses it
  int exceptions_;  ///< exceptions in flight when it was made
};

/// Removes a run with all its files. Throws IoError if a process trains in it, UsageError if the folder is a link; then
/// nothing is removed.
void remove_run(const std::string& path);

/// Returns the folder of an existing run without locking it, for reading. Throws UsageError if there is none.
std::string find_run(const std::string& run, const std::string& runs_dir);

}  // namespace lockstep::run
