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

void parallel(int threads, FunctionRef<void(int, int)> body) {
  if (threads <= 1) {
    body(0, 1);
    return;
  }
  // The runtime may give fewer threads than asked for (OMP_DYNAMIC, OMP_THREAD_LIMIT); the parts stay the same.
#pragma omp parallel num_threads(threads)
  for (int part = omp_get_thread_num(); part < threads; part += omp_get_num_threads()) body(part, threads);
}

}  // namespace lockstep::base
