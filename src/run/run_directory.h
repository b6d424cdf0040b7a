// A run's folder: runs/<name>-<n>/ with config.yaml, steps.csv, evals.csv, summary.json and checkpoints/. Making one is
// atomic (mkdir is the claim, n counts up), so processes that start together get folders of their own and nothing is
// ever overwritten. While a RunDirectory lives it holds the run's lock: no two processes train in one folder. One that
// made its folder and is destroyed by an exception removes it again, unless something in it is worth keeping.
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

  /// The next free <runs_dir>/<name>-<n>. Throws IoError if it cannot be made.
  static RunDirectory create(const std::string& runs_dir, const std::string& name);
  /// Exactly this folder, which must not exist or be empty; UsageError names --resume otherwise.
  static RunDirectory create_at(const std::string& path);
  /// The path of an empty folder that is the next free <runs_dir>/<name>-<n>, for whoever is to make the run there.
  static std::string reserve(const std::string& runs_dir, const std::string& name);
  /// What the settings say: run_dir, or runs_dir and name (or the model's name).
  static RunDirectory create_for(const settings::Settings& settings, const std::string& model_name);
  /// An existing run: a path, or a name under `runs_dir`. Throws UsageError if there is none, IoError if it is in use.
  static RunDirectory open(const std::string& run, const std::string& runs_dir);

  /// A folder of one role of a cluster, made where it does not exist, with a lock of its own: several roles, and their
  /// launcher, share a run. IoError if another process is this role.
  static RunDirectory share(const std::string& path, const std::string& role);

  /// Removes the folder where this object made it and nothing in it is worth keeping (a log, a checkpoint, a server's
  /// state); whether it did.
  bool discard_if_unused();
  /// The same for a folder that another process made and has left.
  static bool discard_if_unused(const std::string& path);
  /// Keeps the folder, whatever is in it: others know it by name.
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
  bool made_;       ///< by this object; false once it is another's
  int exceptions_;  ///< on their way when it was made
};

/// Where an existing run lies, without locking it: for reading. Throws UsageError if there is none.
std::string find_run(const std::string& run, const std::string& runs_dir);

}  // namespace lockstep::run
