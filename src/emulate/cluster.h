// Several small machines on this one: each node has a network namespace with an address and a link of its own, and a
// control group with a CPU quota and a memory limit. All nodes hang on one switch, a bridge in a namespace of its own,
// so nothing of the host's network is touched. Needs root. Everything goes with the object; what a killed process left
// goes at the next start (`remove_leftovers`). For one thread.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "emulate/control_group.h"

namespace lockstep::emulate {

struct NodeSpec {
  double cores = 0;          ///< 0: an equal share of the host's
  double memory_bytes = 0;   ///< 0: no limit
  double rate = 0;           ///< bits per second each way; 0: no limit
  double delay_seconds = 0;  ///< one way; needs a kernel that has it
  double loss = 0;           ///< share of packets; likewise
};

/// "cores=0.5,memory=1GB,rate=1gbit,delay=1ms,loss=0.1%,node2.cores=0.25": of all nodes, then of single ones. Node
/// numbers start at 1. Throws UsageError with what is allowed. "on" or "1": all defaults.
std::vector<NodeSpec> parse_nodes(const std::string& text, size_t nodes);

/// Throws UsageError with the arithmetic where nodes together need more than the host has:
/// "4 nodes x 0.75 cores = 3 cores, and this machine has 2".
void check_fits(const std::vector<NodeSpec>& nodes, double host_cores, double host_memory);

/// Gives those without cores of their own equal shares of what the others leave. To be done after `check_fits`.
void share_cores(std::vector<NodeSpec>& nodes, double host_cores);

/// The core that each node is kept to, so many there are: the system hands out a quota core by core, and what one of
/// them holds is lost to the others. Empty where nodes of more than a core, or more than fit so, must share them all.
/// `load`: what others have of each; empty: nothing.
std::vector<size_t> place_on_cores(const std::vector<NodeSpec>& nodes, size_t cores, std::vector<double> load = {});

/// What a process needs to be on a node: to be done in the child, before it becomes the program.
struct Seat {
  std::string network_namespace;                                 ///< path; empty: the host's
  std::vector<std::string> groups;                               ///< files that the process writes its id to
  std::vector<int> cores;                                        ///< that it is kept to; none: all
  std::vector<std::pair<std::string, std::string>> environment;  ///< tells the monitor what its node is
};

class EmulatedCluster {
 public:
  /// Every node with cores. Throws UsageError without root, where other such clusters leave too little (claims.h), or
  /// naming what the system lacks.
  explicit EmulatedCluster(const std::vector<NodeSpec>& nodes);
  ~EmulatedCluster();
  EmulatedCluster(const EmulatedCluster&) = delete;
  EmulatedCluster& operator=(const EmulatedCluster&) = delete;

  [[nodiscard]] size_t size() const;
  [[nodiscard]] std::string name(size_t node) const;     ///< "node1"
  [[nodiscard]] std::string address(size_t node) const;  ///< of its link, without port
  [[nodiscard]] const NodeSpec& spec(size_t node) const;
  [[nodiscard]] Seat seat(size_t node) const;
  [[nodiscard]] Throttling throttling(size_t node) const;

  void cut(size_t node);  ///< its link is down
  void restore(size_t node);
  void slow(size_t node, double share);  ///< its CPU quota, as a share of what it has by the spec

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Removes namespaces, groups and claims of processes that are gone.
void remove_leftovers();

}  // namespace lockstep::emulate
