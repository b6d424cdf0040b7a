// A cluster on this machine: the commands of its processes. Plain values and free functions, any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster/spec.h"
#include "launch/supervisor.h"

namespace lockstep::launch {

/// The spec as a cluster file (cluster_file.h reads it).
std::string cluster_yaml(const cluster::Spec& spec);

/// The division of this machine's cores among the roles of a cluster.
struct CoreShares {
  int worker_threads = 1;  ///< threads of the chief and each worker; all other roles have one
  bool all_fit = false;    ///< each thread of each role has a core, so waiting threads may spin
  bool apart = false;      ///< each member is kept to its own cores, as all have as many and nobody else needs one
};
/// `threads`: the user's choice per worker; 0: share the cores equally. `allowed`: the cores that the processes may run
/// on, if a quota makes `cores` fewer.
CoreShares share_cores(int cores, const cluster::Spec& spec, int threads = 0, int allowed = 0);

/// Tells the roles when the launcher began, in seconds since 1970: a restarted role continues the training's clock.
inline constexpr const char* kLaunchedVariable = "LOCKSTEP_LAUNCHED";

struct LocalJob {
  cluster::Spec spec;
  std::string program;             ///< path of the program
  std::string name;                ///< its argv[0]
  std::vector<std::string> words;  ///< arguments common to all roles, the command first
  std::string cluster_file;
  CoreShares shares;
  std::map<std::string, int> threads = {};  ///< threads of single roles by name, where they differ from the shares
  std::string wait_policy = "auto";         ///< the user's choice
  bool registers = false;                   ///< members ask the launcher who may train
  double launched = 0;                      ///< value of kLaunchedVariable; 0: none
};

/// Returns the --wait-policy of the job's processes.
std::string waits_of(const LocalJob& job);

/// Makes one process per task: the common arguments, then its role and its share of the machine.
std::vector<RoleProcess> local_roles(const LocalJob& job);

}  // namespace lockstep::launch
