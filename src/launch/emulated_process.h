// `lockstep train --emulate` without workers: runs the same program again, on an emulated node.
#pragma once

#include "launch/local_cluster.h"

namespace lockstep::launch {

/// Runs the program on the node and returns its exit code; its output goes to this process's. Passes signals on to it.
int run_on_emulated_node(const settings::Configuration& configuration, const settings::Settings& settings,
                         const Launcher& launcher);

}  // namespace lockstep::launch
