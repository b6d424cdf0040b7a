// The machine that this process runs on. Free functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::base {

/// The node of an emulated cluster that this process runs on, read from the environment that its launcher sets:
/// LOCKSTEP_NODE, LOCKSTEP_NODE_CORES, LOCKSTEP_NODE_MEMORY, LOCKSTEP_NODE_CPU_GROUP, LOCKSTEP_NODE_MEMORY_GROUP.
struct OwnNode {
  std::string name;
  double cores = 0;
  double memory_bytes = 0;   ///< 0: as much as the machine has
  std::string cpu_group;     ///< folder of the control group that counts CPU time; may be empty
  std::string memory_group;  ///< folder of the control group that limits memory; may be empty
};
std::optional<OwnNode> own_node();

/// Returns the machine's name, or the emulated node's on one; empty if the system does not say.
std::string host_name();

/// Returns a number that all processes of a machine share until it restarts, whatever their host names, and that two
/// machines rarely share. Below 2^24, so that a float holds it exactly; 0 if the system does not say.
uint32_t machine_number();

}  // namespace lockstep::base
