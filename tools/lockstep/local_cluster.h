// `lockstep train` with --workers: the roles as processes on this machine.
#pragma once

#include "command.h"
#include "train/configuration.h"

namespace lockstep::tools {

/// Makes or reopens the run, starts the roles, supervises and displays them to their end. Gives the exit code.
int run_local_cluster(const train::Configuration& configuration, const train::Settings& settings,
                      const Invocation& invocation);

/// What the processes of a training would each find missing, or fetch at the same time, is found or fetched here, once.
/// Data that is made is left to them.
void find_data(const train::Configuration& configuration, const train::Settings& settings);

}  // namespace lockstep::tools
