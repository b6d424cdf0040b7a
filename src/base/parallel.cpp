#include "base/parallel.h"

#include <omp.h>
#include <sched.h>

namespace lockstep::base {

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return std::max(1, omp_get_num_procs());
  return std::max(1, CPU_COUNT(&set));
}

void parallel(Split split, FunctionRef<void(int, int)> body) {
  if (split.parts <= 1) {
    body(0, 1);
    return;
  }
  // The runtime may start fewer threads than requested (OMP_DYNAMIC, OMP_THREAD_LIMIT); the parts stay the same.
#pragma omp parallel num_threads(split.team)
  for (int part = omp_get_thread_num(); part < split.parts; part += omp_get_num_threads()) body(part, split.parts);
}

}  // namespace lockstep::base
