// `lockstep train --emulate` without workers: the same program once more, on an emulated node.
#pragma once

#include "command.h"
#include "train/configuration.h"

namespace lockstep::tools {

/// Its output and its exit code are those of the program on the node, and signals are passed on to it.
int run_on_node(const train::Configuration& configuration, const train::Settings& settings,
                const Invocation& invocation);

}  // namespace lockstep::tools
