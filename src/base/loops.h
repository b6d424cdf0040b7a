// Decides on which threads the loops of base/parallel.h run, and which part each thread gets.
#pragma once

#include "base/parallel.h"

namespace lockstep::base {

/// Makes this thread's next loops run on OpenMP's threads. Called before each loop that a library runs on them:
/// otherwise two kinds of threads would wait on the same cores, and disturb each other at every change.
/// Stands until leave_openmp() or end_team().
void follow_openmp();

/// Makes this thread's next loops run on its team again. Called as another model begins.
void leave_openmp();

/// Ends the threads that share this thread's loops, with GCC also OpenMP's. The next loop starts them again, on the
/// cores allowed then.
void end_team();

/// Makes all later loops of this thread run on it alone.
void never_share_loops();

/// Returns share `part` of `parts` of [0, count), which begins at the same fraction of it whatever the count. So a
/// part of one loop reads what the same part of the loop before has written, and finds it in its core's cache.
inline Range aligned_share(int64_t count, int part, int parts) {
  return {count * part / parts, count * (part + 1) / parts};
}

}  // namespace lockstep::base
