// Histories of parameter-server clusters.
#pragma once

#include "simulation/explore.h"
#include "simulation/ps_cluster.h"

namespace lockstep::simulation {

/// Clusters of all kinds, each with its own faults. With `fault`, clusters of the kind that it concerns.
Suite ps_suite(OldFault fault = OldFault::none);

/// Synchronous clusters without backup workers, of which only servers are killed: every update has the gradients of all
/// workers.
Suite exact_ps_suite();
/// The same clusters as ps_suite; connections break one by one.
Suite lonely_ps_suite();

}  // namespace lockstep::simulation
