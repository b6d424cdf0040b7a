// Groups of each engine for the benchmark: ranks as processes where the engine joins processes, as threads where it
// joins threads; under mpirun every process is a rank already. To add an engine: a line in `crews`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collective/collective.h"

namespace lockstep::bench {

using Work = std::function<void(collective::Collective&)>;

/// This process's place in the job of an MPI launcher; the only one of one otherwise.
struct Job {
  int rank = 0;
  int size = 1;
};
Job job();

struct Crew {
  std::string engine;
  /// Runs the work at `size` ranks; that of rank 0 in this process, which has no other threads meanwhile.
  std::function<void(int size, const collective::GroupOptions&, const Work&)> run;
};

/// The engines that can be measured here: mpi under its launcher, all others without it.
std::vector<Crew> crews();

}  // namespace lockstep::bench
