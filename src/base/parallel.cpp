#include "base/parallel.h"

#include <omp.h>
#include <sched.h>

#include <memory>

#include "base/denormals.h"
#include "base/loops.h"
#include "base/team.h"

namespace lockstep::base {
namespace {

thread_local bool alone = false;
thread_local bool follows = false;  ///< loops run on OpenMP's threads
thread_local bool flushed = false;  ///< OpenMP's threads of this thread take denormal numbers as zero
thread_local std::unique_ptr<Team> team;

/// Keeps loops inside a loop on their thread.
class InsideLoop {
 public:
  InsideLoop() { alone = true; }
  ~InsideLoop() { alone = false; }
  InsideLoop(const InsideLoop&) = delete;
  InsideLoop& operator=(const InsideLoop&) = delete;
};

void run_by_openmp(Split split, FunctionRef<void(int, int)> body) {
  // The runtime may start fewer threads than requested (OMP_DYNAMIC, OMP_THREAD_LIMIT); the parts stay the same.
#pragma omp parallel num_threads(split.team)
  {
    const FlushDenormals flush;
    const InsideLoop inside;
    for (int part = omp_get_thread_num(); part < split.parts; part += omp_get_num_threads()) body(part, split.parts);
  }
}

}  // namespace

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return std::max(1, omp_get_num_procs());
  return std::max(1, CPU_COUNT(&set));
}

void parallel(Split split, FunctionRef<void(int, int)> body) {
  const FlushDenormals flush;
  const int threads = std::min(split.parts, split.team);
  if (threads <= 1 || alone) {
    const int parts = std::max(split.parts, 1);
    for (int part = 0; part < parts; ++part) body(part, parts);
    return;
  }
  if (follows) return run_by_openmp(split, body);
  if (team == nullptr) team = std::make_unique<Team>();
  const InsideLoop inside;
  team->run(split.parts, threads, body);
}

void follow_openmp() {
  follows = true;
  if (flushed) return;
  flushed = true;
  const FlushDenormals only_here;  // this thread is one of them, and goes back
#pragma omp parallel
  flush_denormals_for_good();
}

void leave_openmp() { follows = false; }

void end_team() {
  team.reset();
  follows = false;
  if (!flushed) return;
  flushed = false;
#if !defined(__clang__)
  // Ends OpenMP's threads of this thread. LLVM's library would pause those of all.
  (void)omp_pause_resource(omp_pause_soft, omp_get_initial_device());
#endif
}

void never_share_loops() { alone = true; }

}  // namespace lockstep::base
