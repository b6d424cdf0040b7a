// `lockstep train` with --workers: the roles as processes on this machine.
#pragma once

#include <chrono>

#include "data/fetch.h"
#include "launch/cluster_run.h"
#include "settings/configuration.h"

namespace lockstep::launch {

/// The launching program's arguments, and the receiver of its events.
struct Launcher {
  char** argv = nullptr;
  LaunchEvents* events = nullptr;  ///< borrowed
  data::FetchCallback fetch_progress = {};
  std::chrono::milliseconds tick{1000};  ///< longest time between two events
};

/// Makes or reopens the run, starts the roles and supervises them to their end.
ClusterEnd run_local_cluster(const settings::Configuration& configuration, const settings::Settings& settings,
                             const Launcher& launcher);

/// Finds or fetches the data once, before several processes would each fetch it at the same time. Generated data is
/// left to the processes.
void find_data(const settings::Configuration& configuration, const settings::Settings& settings,
               const data::FetchCallback& progress);

}  // namespace lockstep::launch
