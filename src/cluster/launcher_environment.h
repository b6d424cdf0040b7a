// Ranks that Slurm and MPI launchers give to the processes that they start: rank, number of ranks, and (Slurm) host.
// Free functions over a copy of the environment, so that any environment can be tested; any thread.
//
// Roles follow from ranks by one rule. Parameter servers, if wanted, are the first ranks, an evaluator is the last, and
// all others are workers; without ps they train by all-reduce, and the first is the chief. So rank r is the r-th of
// Spec::tasks(). On each host the ranks take ports in turn, from `first_port` on.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/spec.h"

namespace lockstep::cluster {

using Environment = std::map<std::string, std::string>;
/// Returns a copy of this process's environment.
Environment process_environment();

struct Ranks {
  std::string launcher;  ///< "Slurm", "Open MPI", "PMI"
  int rank = 0;
  int size = 0;
  std::vector<std::string> hosts;  ///< host of each rank; empty: unknown
  int first_port = 0;              ///< LOCKSTEP_PORT, or a number derived from the job's id, equal in all its processes
};

/// Returns nothing unless a launcher started this process as one of several; a Slurm batch script is not. Throws
/// UsageError naming the variable.
std::optional<Ranks> find_ranks(const Environment& environment);

/// Returns the cluster of these ranks. Throws UsageError if they are too few, or if ps are wanted and the hosts are
/// unknown.
Spec spec_of_ranks(const Ranks& ranks, int ps, bool evaluator);

/// Expands "node[01-03,7],gpu1" to node01, node02, node03, node7, gpu1. Throws UsageError.
std::vector<std::string> expand_node_list(const std::string& text);
/// Expands "2(x3),1" to 2, 2, 2, 1. Throws UsageError.
std::vector<int> expand_task_counts(const std::string& text);

}  // namespace lockstep::cluster
