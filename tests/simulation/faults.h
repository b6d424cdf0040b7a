// Faults of a simulated history, as a list that is planned before it is played. So a history that fails can be played
// again with fewer faults. Plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simulation/random.h"

namespace lockstep::simulation {

enum class FaultKind : uint8_t {
  kill,         ///< kill -9 of process a; restarted after `seconds`, or never if they are negative
  stop,         ///< SIGSTOP of process a for `seconds`
  power_cut,    ///< machine a loses its power for `seconds`; its peers hear nothing
  cut,          ///< no packets between machines a and b for `seconds`, then those in flight arrive
  cut_one_way,  ///< the same, from a to b only
  half_open,    ///< the open connections between processes a and b swallow everything from now on
  reset,        ///< the open connections between processes a and b break
  disk_full,    ///< the disk of machine a is full for `seconds`
  disk_slow,    ///< writes of machine a take 0.2 s each for `seconds`
  reject,  ///< a firewall between machines a and b answers with resets for `seconds`, as a dead process's machine does
  interrupt,      ///< Ctrl-C of process a
  disk_lost,      ///< machine a loses its power for `seconds`, and comes back with an empty disk
  half_open_one,  ///< as half_open, but only one of the connections
  reset_one       ///< as reset, but only one of them
};

struct Fault {
  FaultKind kind = FaultKind::kill;
  double at = 0;
  double seconds = 0;
  int a = 0;
  int b = 0;
};

/// How often each kind occurs, relative to the others, and when.
struct FaultMix {
  double kill = 4;
  double stop = 2;
  double power_cut = 0;
  double cut = 2;
  double cut_one_way = 1;
  double half_open = 1;
  double reset = 2;
  double disk_full = 0;
  double disk_slow = 0;
  double reject = 0;
  double interrupt = 0;
  double disk_lost = 0;
  double half_open_one = 0;
  double reset_one = 0;
  double until = 20;       ///< faults begin in [0, until)
  double longest = 12;     ///< longest fault, in seconds
  bool all_return = true;  ///< false: one of eight kills is for good
};

/// Plans `count` faults among these numbers of processes and machines, sorted by time.
std::vector<Fault> plan_faults(Random& random, const FaultMix& mix, size_t count, int processes, int machines);

/// Returns a fault as one line; `process` and `machine` name them.
std::string describe(const Fault& fault, const std::function<std::string(int)>& process,
                     const std::function<std::string(int)>& machine);

/// Returns a list with as few of these faults as it takes to fail.
std::vector<Fault> shrink(std::vector<Fault> faults, const std::function<bool(const std::vector<Fault>&)>& fails);

}  // namespace lockstep::simulation
