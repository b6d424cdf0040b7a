// What launching on this machine and over ssh share: a supervised job with its display, and the closing at its end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cluster/supervisor.h"
#include "terminal.h"
#include "train/configuration.h"

namespace lockstep::tools {

struct ClusterRun {
  const train::Settings* settings = nullptr;  ///< resolved
  std::string run_dir;
  std::string program;               ///< its name, for what is printed
  std::vector<cluster::Task> tasks;  ///< of the cluster
  std::vector<cluster::RoleProcess> roles;
  cluster::Supervisor::Callback also = {};                ///< hears of every event first
  std::function<std::vector<std::string>()> faults = {};  ///< asked often: those that were just made
  /// Once all have ended: brings in files that lie elsewhere, and says which did not come.
  std::function<std::string()> collect = {};
  std::function<bool()> discard = {};  ///< after a failure: removes a run that holds nothing
};

/// Supervises, displays, closes. The exit code; throws Error or UsageError with the line that says why the job failed.
int run_cluster(const ClusterRun& run);

/// Of the settings, those that only a launcher needs, as YAML: what it keeps in its run's launch.yaml.
std::string launch_yaml(const train::Settings& settings);
/// Whether it is one of those.
bool is_launch_setting(std::string_view name);
/// On resuming: sets what the run's launch.yaml says and the user does not, where there is one.
void apply_launch_yaml(train::Configuration& configuration, const std::string& run_dir);

}  // namespace lockstep::tools
