// The nodes of an emulated cluster with the roles that are on them, as --emulate says: what their processes are started
// with, and what the run keeps of them. For one thread; everything on the system goes with the object.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "emulate/cluster.h"
#include "process/child_process.h"

namespace lockstep::launch {

/// Addresses of nodes are these three numbers and their own.
inline constexpr const char* kEmulatedNetwork = "10.77.0";

/// One node's roles: "ps:0", "worker:1".
using NodeRoles = std::vector<std::string>;

class EmulatedNodes {
 public:
  /// `text` is that of --emulate. Throws UsageError where it is wrong, does not fit this machine or is not permitted.
  EmulatedNodes(const std::string& text, std::vector<NodeRoles> roles);

  [[nodiscard]] emulate::EmulatedCluster& cluster() { return cluster_; }
  /// For each of so many that train on the node.
  [[nodiscard]] int threads(size_t node, size_t trainers) const;
  [[nodiscard]] size_t node_of(const std::string& role) const;
  /// Puts a process that will be started on the node.
  void seat(process::Command& command, size_t node) const;

  /// "3 emulated nodes of 0.5 cores, 1 Gbit/s".
  [[nodiscard]] std::string text() const;
  /// nodes.json; at the `ended` run also how long each was held back, and throttling.json by role.
  void write(const std::string& run_dir, bool ended) const;

 private:
  std::vector<NodeRoles> roles_;
  emulate::EmulatedCluster cluster_;
};

/// {"worker:0": {"periods": ..}}: throttling.json.
std::string throttling_json(const std::vector<std::pair<std::string, emulate::Throttling>>& roles);

}  // namespace lockstep::launch
