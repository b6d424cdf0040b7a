// Several small machines on this one. Each node has its own network namespace with an address and a link, and a control
// group with a CPU quota and a memory limit. All nodes are connected to one switch, a bridge in its own namespace, so
// the host's network is not touched. Needs root. Everything is removed with the object; leftovers of killed processes
// are removed at the next start (`remove_leftovers`). For one thread.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "emulate/control_group.h"

namespace lockstep::emulate {

struct NodeSpec {
  double cores = 0;          ///< 0: an equal share of the host's cores
  double memory_bytes = 0;   ///< 0: no limit
  double rate = 0;           ///< bits per second each way; 0: no limit
  double delay_seconds = 0;  ///< one way; needs kernel support
  double loss = 0;           ///< share of packets lost; needs kernel support
};

/// Parses "cores=0.5,memory=1GB,rate=1gbit,delay=1ms,loss=0.1%,node2.cores=0.25": first for all nodes, then for single
/// ones. Node numbers start at 1. Throws UsageError with the allowed values. "on" or "1": all defaults.
std::vector<NodeSpec> parse_nodes(const std::string& text, size_t nodes);

/// Throws UsageError with the arithmetic if the nodes together need more than the host has: "4 nodes x 0.75 cores = 3
/// cores, and this machine has 2".
void check_fits(const std::vector<NodeSpec>& nodes, double host_cores, double host_memory);

/// Gives nodes without a number of cores equal shares of the rest. Call it after `check_fits`.
void share_cores(std::vector<NodeSpec>& nodes, double host_cores);

/// Returns the core that each node is kept to, out of `cores`. The system hands out a quota core by core, and the part
/// held by one core is lost to the others. Empty if a node needs more than a core or they do not fit that way: then all
/// share all cores. `load`: load of others on each core; empty: none.
std::vector<size_t> place_on_cores(const std::vector<NodeSpec>& nodes, size_t cores, std::vector<double> load = {});

/// Settings that put a process on a node, applied in the child before it runs the program.
struct Seat {
  std::string network_namespace;                                 ///< path; empty: the host's
  std::vector<std::string> groups;                               ///< files that the process writes its id to
  std::vector<int> cores;                                        ///< cores that it is kept to; none: all
  std::vector<std::pair<std::string, std::string>> environment;  ///< tells the monitor the node's limits
};

class EmulatedCluster {
 public:
  /// Makes the cluster; every node has its cores set. Throws UsageError without root, if other clusters leave too
  /// little (claims.h), or naming what the system lacks.
  explicit EmulatedCluster(const std::vector<NodeSpec>& nodes);
  ~EmulatedCluster();
  EmulatedCluster(const EmulatedCluster&) = delete;
  EmulatedCluster& operator=(const EmulatedCluster&) = delete;

  [[nodiscard]] size_t size() const;
  [[nodiscard]] std::string name(size_t node) const;     ///< "node1"
  [[nodiscard]] std::string address(size_t node) const;  ///< address of its link, without port
  [[nodiscard]] const NodeSpec& spec(size_t node) const;
  [[nodiscard]] Seat seat(size_t node) const;
  [[nodiscard]] Throttling throttling(size_t node) const;

  void cut(size_t node);  ///< takes its link down
  void restore(size_t node);
  void slow(size_t node, double share);  ///< sets its CPU quota, as a share of the spec's

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// Removes namespaces, groups and claims of dead processes.
void remove_leftovers();

}  // namespace lockstep::emulate
