// The reader of cluster files must answer any bytes with a cluster or a UsageError, and every task of a cluster has an
// address and runs on one node.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/address.h"
#include "cluster/cluster_file.h"
#include "lockstep/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::cluster;
  try {
    const ClusterFile file = parse_cluster_file(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
    if (find_problem(file.spec)) std::abort();
    size_t placed = 0;
    for (const Node& node : file.nodes) {
      for (const Task& task : node.tasks) {
        if (lockstep::base::parse_address(file.spec.address(task)).host != node.host) std::abort();
        ++placed;
      }
    }
    if (placed != file.spec.tasks().size()) std::abort();
  } catch (const lockstep::UsageError&) {
    return 0;
  }
  return 0;
}
