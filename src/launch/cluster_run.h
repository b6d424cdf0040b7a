// Runs a job of roles on this machine or over ssh: starting, supervising, collecting.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "launch/fault_maker.h"
#include "launch/launch_events.h"
#include "launch/supervisor.h"
#include "settings/settings.h"

namespace lockstep::run {
class RunDirectory;
}

namespace lockstep::launch {

struct ClusterRun {
  const settings::Settings* settings = nullptr;  ///< resolved
  std::string run_dir;
  std::vector<cluster::Task> tasks;  ///< tasks of the cluster
  std::vector<RoleProcess> roles;
  const cluster::Spec* registered = nullptr;              ///< borrowed; its members ask this launcher who may train
  LaunchEvents* events = nullptr;                         ///< borrowed
  std::chrono::milliseconds tick{1000};                   ///< longest time between two events
  Supervisor::Callback also = {};                         ///< is called before `events`, with each event of a role
  std::function<std::vector<std::string>()> faults = {};  ///< asked often: the faults that were just made
  std::function<void(SignalRole)> signals = {};           ///< takes the way to signal roles, before they start
  /// Called once all roles have ended: brings in files that lie elsewhere, and returns a line about missing ones.
  std::function<std::string()> collect = {};
  std::function<bool()> discard = {};  ///< after a failure: removes a run that holds nothing
};

struct ClusterEnd {
  int code = 0;  ///< exit code of the program
  std::string run_dir;
  std::string uncollected;        ///< a line about files that were not collected; empty if all were
  bool already_finished = false;  ///< the resumed run had nothing left to train; no role was started
};

/// Returns whether a run has nothing left to train by the present settings, and a summary that tells how it ended.
bool has_finished(const settings::Settings& settings, const run::RunDirectory& directory);

/// Supervises the job to its end. Throws RunError with the failure if the job failed.
ClusterEnd run_cluster(const ClusterRun& run);

}  // namespace lockstep::launch
