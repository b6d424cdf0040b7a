// The nodes of an emulated cluster and their roles, as set by --emulate: how to start processes on them, and files that
// the run keeps about them. For one thread; everything on the system is removed with the object.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "emulate/cluster.h"
#include "process/child_process.h"

namespace lockstep::launch {

/// First three numbers of the nodes' addresses.
inline constexpr const char* kEmulatedNetwork = "10.77.0";

/// One node's roles: "ps:0", "worker:1".
using NodeRoles = std::vector<std::string>;

class EmulatedNodes {
 public:
  /// `text`: value of --emulate. Throws UsageError if it is invalid, does not fit this machine or is not permitted.
  EmulatedNodes(const std::string& text, std::vector<NodeRoles> roles);

  [[nodiscard]] emulate::EmulatedCluster& cluster() { return cluster_; }
  /// Returns the threads of each of `trainers` processes that train on the node.
  [[nodiscard]] int threads(size_t node, size_t trainers) const;
  [[nodiscard]] size_t node_of(const std::string& role) const;
  /// Changes a command so that its process runs on the node.
  void put_on_node(process::Command& command, size_t node) const;

  /// Adds a line with the node's memory to the monitor.csv of a role that has died: a role samples its node itself, so
  /// nothing else sees the node without it.
  void note_memory(const std::string& role, const std::string& monitor_csv) const;

  /// "3 emulated nodes of 0.5 cores, 1 Gbit/s".
  [[nodiscard]] std::string text() const;
  /// Writes nodes.json. When the run has `ended`, includes how long each node was throttled, and writes throttling.json
  /// by role.
  void write(const std::string& run_dir, bool ended) const;

 private:
  std::vector<NodeRoles> roles_;
  emulate::EmulatedCluster cluster_;
};

/// Returns the content of throttling.json: {"worker:0": {"periods": ..}}.
std::string throttling_json(const std::vector<std::pair<std::string, emulate::Throttling>>& roles);

}  // namespace lockstep::launch
