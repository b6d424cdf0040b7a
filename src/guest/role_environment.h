// The environment in which a role of a foreign program starts: the cluster as TF_CONFIG, torchrun's rank variables, and
// a file of hosts. Pure functions; any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cluster/cluster_file.h"

namespace lockstep::guest {

using Values = std::vector<std::pair<std::string, std::string>>;

/// The cluster with the master's port for rank variables, which no role's address uses.
struct Places {
  cluster::ClusterFile cluster;
  bool one_host = true;  ///< all nodes are this machine
  std::string master_host = "127.0.0.1";
  int master_port = 0;
  std::string hosts_file;
};

/// Returns the node of a task.
size_t node_of(const Places& places, const cluster::Task& task);
/// Returns TF_CONFIG as JSON; empty for one process without a cluster.
std::string tf_config(const Places& places, const cluster::Task& task);
/// Returns the variables of a task. Rank variables are those of members; others get none.
Values environment_of(const Places& places, const cluster::Task& task);
/// Returns the values of names in braces (role_names()) for a task.
Values names_of(const Places& places, const cluster::Task& task, const std::string& run_dir);
/// Returns the lines "HOST slots=N" of all hosts with members, as Open MPI and Horovod take them.
std::string hosts_text(const Places& places);

}  // namespace lockstep::guest
