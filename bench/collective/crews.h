// Groups of each engine for the benchmark: ranks are processes or threads, as the engine requires. Under mpirun every
// process is already a rank. To add an engine: a line in `crews`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collective/collective.h"

namespace lockstep::bench {

using Work = std::function<void(collective::Collective&)>;

/// This process's place in the job of an MPI launcher; rank 0 of 1 otherwise.
struct Job {
  int rank = 0;
  int size = 1;
};
Job job();

struct Crew {
  std::string engine;
  /// Runs the work at `size` ranks. Rank 0 runs in this process, which must have no other threads meanwhile.
  std::function<void(int size, const collective::GroupOptions&, const Work&)> run;
};

/// Returns the engines that can be measured here: mpi under its launcher, all others without it.
std::vector<Crew> crews();

}  // namespace lockstep::bench
