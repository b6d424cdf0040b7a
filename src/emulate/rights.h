// Rights of this process on this machine, found out before anything is made: an ordinary user, or root in a container,
// may not make network namespaces or control groups. Each function gives the reason in a few words; "" where it is
// allowed. Free functions; any thread.
#pragma once

#include <string>

namespace lockstep::emulate {

/// As "network namespaces need CAP_SYS_ADMIN".
std::string why_no_networks();
/// As "control groups are read-only (/sys/fs/cgroup/cpu)". Makes a group and removes it.
std::string why_no_control_groups();
/// The first reason against nodes with a network and a control group of their own.
std::string why_no_emulation();

}  // namespace lockstep::emulate
