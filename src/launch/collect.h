// Copies the files of a run from the hosts of a launch. Each host's folder arrives in its own new folder; it
// counts only if every file has the checksum that the host states afterwards, and then moves into the run's folder.
// From each host only the files that its own roles write are taken: the folders of these roles, and the run's own files
// from the chief's host (in an all-reduce from every worker's). Other files are a problem unless they are those that
// another host has sent: hosts may share a folder. Nothing of a host whose files do not arrive as stated is kept here,
// and nothing is removed on a host with a problem. Runs on the caller's thread.
#pragma once

#include <string>

#include "launch/ssh_launch.h"
#include "launch/tar_reader.h"

namespace lockstep::launch {

/// Collects from every host into `folder`, the chief's last: its files replace those of the same names. `remove`: then
/// removes each host's folder whose files are here, unless it has changed. Returns the problems, each with its host;
/// empty if there are none. The caller holds the folder's lock.
std::string collect(const SshJob& job, const std::string& folder, bool remove, const TarLimits& limits = {});

}  // namespace lockstep::launch
