// A cluster as a YAML file, in one of three forms (docs/cluster-spec.md), and the cluster that a launcher sets up on
// this machine. Plain values; any thread.
//
//   worker: [a:4000, b:4000]       nodes:                       layout: PW-W
//   ps: [a:4001]                     - host: a                  hosts: [a, b]
//                                      roles: [ps, worker]      port: 4000
//
// Errors are UsageErrors that name file, line, key, the value seen and what is allowed.
#pragma once

#include <string>
#include <vector>

#include "cluster/spec.h"

namespace lockstep::cluster {

/// First port unless the file sets one: each role on a host takes the next.
inline constexpr int kFirstPort = 4000;

/// A machine of the cluster, for launchers.
struct Node {
  std::string host;         ///< as in the addresses, without brackets
  std::string ssh;          ///< destination for ssh: "user@host", or the host
  std::string dir;          ///< working folder there; "": the user's home folder
  std::vector<Task> tasks;  ///< tasks on this node, in the order of their ports
};

struct ClusterFile {
  Spec spec;
  std::vector<Node> nodes;  ///< in the order of the file
};

/// Parses a cluster file. `file`: its name, for errors.
ClusterFile parse_cluster_file(const std::string& text, const std::string& file);
ClusterFile load_cluster_file(const std::string& path);

/// Returns the roles of each node of a layout: groups of P (or PS), W, C, E with '-' between them, as in PS-W-W or
/// PW-PW.
std::vector<std::vector<Role>> parse_layout(const std::string& text);

struct LocalCluster {
  int workers = 0;  ///< with a layout: 0, or the layout's number
  int ps = 1;       ///< ignored with a layout
  bool evaluator = false;
  std::string layout;  ///< "": all roles on 127.0.0.1; else node k is 127.0.0.(k+1)
  /// Set if the nodes have their own network: node k is NETWORK.(k+1), all its ports are free, and without a layout
  /// each role has its own node. "10.77.0"; empty: they are addresses of this machine.
  std::string network = {};
};

/// Makes a spec of loopback addresses. Their ports are free now and below the system's ports for outgoing connections,
/// so a restarted role finds its own port free. If the layout has no evaluator, it runs on the last node.
Spec local_spec(const LocalCluster& wanted);
/// Makes the same spec with the tasks of each node.
ClusterFile local_cluster(const LocalCluster& wanted);

}  // namespace lockstep::cluster
