// How idle OpenMP threads wait. The runtime reads that from the environment before main, so a process that needs
// another policy than it was started with executes itself once more.
#pragma once

#include <string>

#include "train/settings.h"

namespace lockstep::tools {

/// Executes the program again, arguments unchanged, where idle threads must block and OpenMP was not told so. Returns
/// where nothing needs to change. OMP_WAIT_POLICY set by the user stays, unless --wait-policy says otherwise.
void ensure_wait_policy(const train::Settings& settings, char** argv);

}  // namespace lockstep::tools
