// What a resumed run needs on the hosts of a launch and may lie only here: a host may be new, its files may have been
// removed, or only the chief's host has them. Blocks the caller's thread.
#pragma once

#include <string>

#include "launch/ssh_launch.h"

namespace lockstep::launch {

/// Sends the run's settings in `folder` to every host, and its newest checkpoint to the chief's. The chief's host keeps
/// its own files of the same names. Throws IoError that names the host.
void hand_out(const SshJob& job, const std::string& folder);

}  // namespace lockstep::launch
