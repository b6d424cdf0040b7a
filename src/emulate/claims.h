// Resources that emulated clusters claim on this machine. Each cluster records its nodes before it makes them, so that
// clusters running at the same time are added up, whoever started them, and get separate cores. A claim is a file in
// /run/lockstep, removed with the object; one of a dead process does not count (owner.h). Needs root. For one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "emulate/cluster.h"

namespace lockstep::emulate {

struct ClaimedNode {
  double cores = 0;
  double memory_bytes = 0;  ///< 0: no limit
  int core = -1;            ///< core of the system that the node is kept to; -1: none
};

struct Claim {
  pid_t process = 0;
  pid_t within = 0;  ///< process with the claim that contains this one; 0: none
  std::string command;
  std::vector<ClaimedNode> nodes;
  bool frame = false;  ///< contains the claims of other clusters and runs nothing itself
};

/// Returns the claims of all live processes, this one included.
std::vector<Claim> claims();

/// Throws UsageError if all nodes together need more than the host has. The message shows the arithmetic, the other
/// clusters and how to end them.
void check_beside(const std::vector<NodeSpec>& nodes, const std::vector<Claim>& others, double host_cores,
                  double host_memory);

/// Returns the load of other clusters on each of these cores. Nodes kept to no core have an equal part of each.
std::vector<double> load_of(const std::vector<Claim>& others, const std::vector<int>& cores);

class ClaimFile {
 public:
  enum class Cores : uint8_t {
    choose,  ///< gives each node a core, beside those of others, if it fits on one
    leave    ///< reserves for later clusters, each with its own claim within this one
  };
  /// Claims `nodes`, which all have their cores set. A claim is part of the parent process's, if that has one. Throws
  /// as `check_beside` does; IoError if the file cannot be written.
  ClaimFile(const std::vector<NodeSpec>& nodes, Cores cores);
  ~ClaimFile();
  ClaimFile(const ClaimFile&) = delete;
  ClaimFile& operator=(const ClaimFile&) = delete;

  /// Core of the system for each node; empty if they share all cores.
  [[nodiscard]] const std::vector<int>& cores() const { return cores_; }

 private:
  std::string path_;
  base::FileHandle held_;  ///< lock on the file, which shows others that this process lives
  std::vector<int> cores_;
};

/// Removes claims of dead processes.
void remove_leftover_claims();

}  // namespace lockstep::emulate
