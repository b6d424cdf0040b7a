// Loops on several threads.
//
// `parallel` runs a body once for each part of a loop and returns when all are done. `share` splits work statically, so
// the same number of parts always gives the same split and therefore the same bits.
//
// Every thread that starts loops (a trainer, a replica, a handler of a parameter server) has threads of its own that
// share them (base/team.h). oneDNN's loops run on OpenMP's threads instead. So do all later loops of a thread that has
// run one of oneDNN's, until another model begins (base/loops.h), and always on as many threads, whatever the parts:
// GCC's OpenMP ends and creates threads when a team changes its size.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/function_ref.h"

namespace lockstep::base {

/// Returns the number of cores this process may run on (its affinity mask), at least 1.
int available_cores();

/// The number of parts of a loop, and the threads that the caller has for its loops. A loop takes no more threads than
/// it has parts.
struct Split {
  int parts = 1;
  int team = 1;
};

/// Runs body(part, parts) for each part, each on its own thread if the team is large enough. One part is a plain call,
/// and so is a loop inside a body. Bodies must not wait for each other, and must not throw: the program would end.
void parallel(Split split, FunctionRef<void(int part, int parts)> body);

struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  [[nodiscard]] int64_t size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

/// Returns share `part` of `parts` of [0, count): contiguous, with sizes that differ by at most one grain.
inline Range share(int64_t count, int part, int parts, int64_t grain = 1) {
  const int64_t grains = (count + grain - 1) / grain;
  const int64_t each = grains / parts;
  const int64_t extra = grains % parts;
  const int64_t begin = part * each + std::min<int64_t>(part, extra);
  const int64_t end = begin + each + (part < extra ? 1 : 0);
  return {std::min(begin * grain, count), std::min(end * grain, count)};
}

/// Splits `work` units for a team of `threads`: one part per `grain`, the least work for which a thread pays off, and
/// at most one part per thread.
inline Split split_for(int64_t work, int64_t grain, int threads) {
  return {static_cast<int>(std::clamp<int64_t>(work / std::max<int64_t>(grain, 1), 1, threads)), threads};
}

}  // namespace lockstep::base
