// What Slurm and MPI launchers say to the processes that they start: a rank, how many there are, and (Slurm) where.
// Free functions over a copy of the environment, so that any environment can be tested; any thread.
//
// One rule makes roles of ranks: all are workers that train by all-reduce (the first is the chief); where ps are wanted
// they are the first ranks, and where an evaluator is, it is the last. Rank r is thus the r-th of Spec::tasks(). On
// each host the ranks take ports in turn, from `first_port` on.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/spec.h"

namespace lockstep::cluster {

using Environment = std::map<std::string, std::string>;
/// A copy of this process's.
Environment process_environment();

struct Ranks {
  std::string launcher;  ///< "Slurm", "Open MPI", "PMI"
  int rank = 0;
  int size = 0;
  std::vector<std::string> hosts;  ///< of each rank; empty: the launcher does not say
  int first_port = 0;              ///< LOCKSTEP_PORT, or a number that all processes of the job make of its id
};

/// Nothing where this process is not one of several that a launcher started; a Slurm batch script itself is not.
/// Throws UsageError that names the variable.
std::optional<Ranks> find_ranks(const Environment& environment);

/// The cluster of these ranks. Throws UsageError where they are too few, or there are ps and no hosts are known.
Spec spec_of_ranks(const Ranks& ranks, int ps, bool evaluator);

/// "node[01-03,7],gpu1" as node01, node02, node03, node7, gpu1. Throws UsageError.
std::vector<std::string> expand_node_list(const std::string& text);
/// "2(x3),1" as 2, 2, 2, 1. Throws UsageError.
std::vector<int> expand_task_counts(const std::string& text);

}  // namespace lockstep::cluster
