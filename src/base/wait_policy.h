// How the pool's threads wait for work. OpenMP reads it from the environment before main, so a process that needs
// another policy executes itself once more.
#pragma once

#include <cstdint>

namespace lockstep::base {

enum class WaitPolicy : uint8_t {
  brief,  ///< spin for some tens of microseconds, then sleep: as fast as spinning while work is dense, and without long
          ///< delays if another program wants a core
  spin,   ///< OpenMP's threads never give the core away, those of a team (base/team.h) only after some milliseconds
  block,  ///< sleep at once: for more threads than cores
};

/// Executes the program again with the same arguments, unless the environment already has the right values. Call it
/// before other threads start. Keeps the user's own settings (OMP_WAIT_POLICY, GOMP_SPINCOUNT), unless `forced`.
void ensure_wait_policy(WaitPolicy policy, bool forced, char** argv);

}  // namespace lockstep::base
