// How threads of the pool wait for work. OpenMP reads that from the environment before main, so a process that needs
// another policy than it was started with executes itself once more.
#pragma once

#include <cstdint>

namespace lockstep::base {

enum class WaitPolicy : uint8_t {
  brief,  ///< spin for some tens of microseconds, then sleep: as fast as spinning while work is dense, and not at the
          ///< mercy of the scheduler when another program wants a core
  spin,   ///< never give the core away
  block,  ///< sleep at once: for more threads than cores
};

/// Executes the program again, arguments unchanged, unless its environment says already what it must. Must run before
/// other threads exist. What the user has set (OMP_WAIT_POLICY, GOMP_SPINCOUNT) stays, unless `forced`.
void ensure_wait_policy(WaitPolicy policy, bool forced, char** argv);

}  // namespace lockstep::base
