// Checks the rights of this process before anything is made: an ordinary user, or root in a container, may not make
// network namespaces or control groups. Each function returns the reason in a few words, or "" if it is allowed. Free
// functions; any thread.
#pragma once

#include <string>

namespace lockstep::emulate {

/// For example "network namespaces need CAP_SYS_ADMIN".
std::string why_no_networks();
/// For example "control groups are read-only (/sys/fs/cgroup/cpu)". Makes a group and removes it.
std::string why_no_control_groups();
/// Returns the first reason against nodes with their own network and control group.
std::string why_no_emulation();

}  // namespace lockstep::emulate
