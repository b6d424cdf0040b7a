// The cluster as a YAML file, in one of three forms (docs/cluster-spec.md), and the cluster that a launcher makes up on
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

/// Where ports begin unless the file says: each role on a host takes the next.
inline constexpr int kFirstPort = 4000;

/// A machine of the cluster, for who starts processes there.
struct Node {
  std::string host;         ///< as in the addresses, without brackets
  std::string ssh;          ///< what ssh connects to: "user@host", or the host
  std::string dir;          ///< where to run there; "": the home folder of the user
  std::vector<Task> tasks;  ///< what runs there, in the order of the ports
};

struct ClusterFile {
  Spec spec;
  std::vector<Node> nodes;  ///< in the order of the file
};

/// `file` is its name, for errors.
ClusterFile parse_cluster_file(const std::string& text, const std::string& file);
ClusterFile load_cluster_file(const std::string& path);

/// The roles of each node of a layout: groups of P (or PS), W, C, E with '-' between them, as in PS-W-W or PW-PW.
std::vector<std::vector<Role>> parse_layout(const std::string& text);

struct LocalCluster {
  int workers = 0;  ///< with a layout: 0, or as many as it has
  int ps = 1;       ///< without a layout
  bool evaluator = false;
  std::string layout;  ///< "": all roles on 127.0.0.1; else node k is 127.0.0.(k+1)
  /// The nodes have a network of their own: node k is NETWORK.(k+1), all its ports are free, and without a layout every
  /// role has a node for itself. "10.77.0"; empty: they are addresses of this machine.
  std::string network = {};
};

/// Loopback addresses with ports that are free now and below those that the system gives to outgoing connections, so
/// that a role that is started again finds its own free. An evaluator that the layout lacks runs on the last node.
Spec local_spec(const LocalCluster& wanted);
/// The same with what runs on each node.
ClusterFile local_cluster(const LocalCluster& wanted);

}  // namespace lockstep::cluster
