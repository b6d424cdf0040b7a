// Roles of a foreign program on the hosts of a cluster file, over ssh: the command that starts each of them there, the
// file of hosts that it finds there, and the way of its files to this machine. Internal to the room; one thread.
#pragma once

#include <string>
#include <vector>

#include "guest/guest_run.h"
#include "guest/role_environment.h"
#include "launch/ssh_launch.h"

namespace lockstep::guest {

/// Reads the cluster file and chooses a folder for the run on the hosts. Throws UsageError.
launch::SshJob job_on(const Hosts& hosts, const std::string& run_dir);
/// Returns the cluster as roles see it. The master's port is one that no role has.
Places places_of(const launch::SshJob& job);

/// Writes the file of hosts into the run's folder on each host. Throws IoError, which names the host.
void send_hosts_file(const launch::SshJob& job, const std::string& file);
/// Starts the words in a folder of the run on the node's host. Empty variables are removed there.
process::Command on_host(const launch::SshJob& job, const cluster::Node& node, const std::string& folder,
                         const Values& environment, const std::vector<std::string>& words);
/// Returns the processes that a line of a host names as left behind and ended; empty for any other line.
std::string left_on_host(const std::string& line);

}  // namespace lockstep::guest
