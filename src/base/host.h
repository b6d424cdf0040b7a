// The machine that this process runs on. Free functions; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace lockstep::base {

/// The node of an emulated cluster that this process was put on, as its launcher says in the environment:
/// LOCKSTEP_NODE, LOCKSTEP_NODE_CORES, LOCKSTEP_NODE_MEMORY, LOCKSTEP_NODE_CPU_GROUP, LOCKSTEP_NODE_MEMORY_GROUP.
struct OwnNode {
  std::string name;
  double cores = 0;
  double memory_bytes = 0;   ///< 0: as much as the machine has
  std::string cpu_group;     ///< the folder of the control group that counts CPU time; may be empty
  std::string memory_group;  ///< likewise
};
std::optional<OwnNode> own_node();

/// The emulated node's, where this process is on one. Empty where the system does not say.
std::string host_name();

/// The same for all processes of a machine since it was started, whatever they call it, and hardly ever that of another
/// one. Below 2^24, so that a float holds it; 0 where the system does not say.
uint32_t machine_number();

}  // namespace lockstep::base
