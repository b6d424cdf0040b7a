// Runs this process as one role of a cluster.
#pragma once

#include "cluster/find_cluster.h"
#include "command.h"
#include "settings/configuration.h"

namespace lockstep::tools {

int run_role(const settings::Configuration& configuration, const settings::Settings& settings,
             const cluster::FoundCluster& found, const Invocation& invocation);

}  // namespace lockstep::tools
