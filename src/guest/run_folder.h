// Writes what a foreign program did into a run's folder, in the files of a training (docs/formats.md). Internal to the
// room; one thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "guest/figures.h"

namespace lockstep::guest {

struct RoleResult {
  std::string role;    ///< "worker:1"; "process" without a cluster
  std::string folder;  ///< the chief's is the run's
  std::string host;
  bool trains = true;
  double finished = records::kUnknown;  ///< seconds from the start of all roles to its end
  Figures figures;
};

struct RunResult {
  std::string run_dir;
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<std::string> command;
  double seconds = 0;             ///< from the start of all roles to the end of the last trainer
  std::vector<RoleResult> roles;  ///< the chief first
};

/// Throws UsageError if the folder already holds a run.
void check_is_new(const std::string& run_dir);
/// Writes config.yaml, before the roles start.
void write_config(const RunResult& run);
/// Writes the curves, summaries and figures.json: the chief's last values, by figure.
void write_results(const RunResult& run);

}  // namespace lockstep::guest
