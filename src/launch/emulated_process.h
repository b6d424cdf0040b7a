// `lockstep train --emulate` without workers: the same program once more, on an emulated node.
#pragma once

#include "launch/local_cluster.h"

namespace lockstep::launch {

/// Output and exit code are those of the program on the node; signals are passed on to it.
int run_on_emulated_node(const settings::Configuration& configuration, const settings::Settings& settings,
                         const Launcher& launcher);

}  // namespace lockstep::launch
