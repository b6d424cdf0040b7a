// What emulated clusters have of this machine. Each writes down its nodes before it makes them, so that those that run
// at the same time are added up, whoever started them, and are kept to cores of their own. A claim is a file in
// /run/lockstep that goes with the object; one of a process that is gone counts no more (owner.h). Needs root. For one
// thread.
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
  int core = -1;            ///< of the system, that it is kept to; -1: none
};

struct Claim {
  pid_t process = 0;
  pid_t within = 0;  ///< the process of whose claim it is a part; 0: none
  std::string command;
  std::vector<ClaimedNode> nodes;
  bool frame = false;  ///< for clusters with claims of their own within it: by itself it runs nothing
};

/// Of all processes that live; also those of this one.
std::vector<Claim> claims();

/// Throws UsageError with the arithmetic, who the others are and how to end them, where all nodes together need more
/// than the host has.
void check_beside(const std::vector<NodeSpec>& nodes, const std::vector<Claim>& others, double host_cores,
                  double host_memory);

/// What the nodes of others have of each of these cores of the system; those kept to none have an equal part of each.
std::vector<double> load_of(const std::vector<Claim>& others, const std::vector<int>& cores);

class ClaimFile {
 public:
  enum class Cores : uint8_t {
    choose,  ///< for the nodes, beside those of others, where each fits on one
    leave    ///< it stands for clusters that come later, each with a claim of its own within this one
  };
  /// Every node with cores. What a process claims is a part of what its parent has, where that has a claim. Throws as
  /// `check_beside`; IoError where it cannot be written.
  ClaimFile(const std::vector<NodeSpec>& nodes, Cores cores);
  ~ClaimFile();
  ClaimFile(const ClaimFile&) = delete;
  ClaimFile& operator=(const ClaimFile&) = delete;

  /// The core of the system for each node; empty where they share them all.
  [[nodiscard]] const std::vector<int>& cores() const { return cores_; }

 private:
  std::string path_;
  base::FileHandle held_;  ///< lock on the file, which tells others that this process lives
  std::vector<int> cores_;
};

/// Of processes that are gone.
void remove_leftover_claims();

}  // namespace lockstep::emulate
