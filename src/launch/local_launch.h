// A cluster on this machine: what its processes are started with. Plain values and free functions, any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster/spec.h"
#include "launch/supervisor.h"

namespace lockstep::launch {

/// The spec as a cluster file (cluster_file.h reads it).
std::string cluster_yaml(const cluster::Spec& spec);

/// How the cores of one machine are divided among the roles of a cluster that all run on it.
struct CoreShares {
  int worker_threads = 1;  ///< of the chief and each worker; all others have one
  bool all_fit = false;    ///< every thread of every role has a core: waiting threads may spin
  bool none_left = false;  ///< and the members take all of them: each is kept to its own
};
/// `threads` is what the user wants for each worker; 0: the cores are shared equally.
CoreShares share_cores(int cores, const cluster::Spec& spec, int threads = 0);

struct LocalJob {
  cluster::Spec spec;
  std::string program;             ///< the file to run
  std::string name;                ///< its argv[0]
  std::vector<std::string> words;  ///< the arguments that all roles share, beginning with the command
  std::string cluster_file;
  CoreShares shares;
  std::map<std::string, int> threads = {};  ///< of single roles, by name, where the shares do not say
  std::string wait_policy = "auto";         ///< as the user wants it
};

/// --wait-policy of its processes.
std::string waits_of(const LocalJob& job);

/// One process per task: the words, then which role it is and what it has of the machine.
std::vector<RoleProcess> local_roles(const LocalJob& job);

}  // namespace lockstep::launch
