// The one thread pool of the process: OpenMP's, shared with oneDNN.
//
// `parallel` runs a body once on each of `threads` threads and returns when all are done. Work is split
// statically by `share`, so the same thread count always gives the same split and therefore the same bits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/function_ref.h"

namespace lockstep::base {

/// Cores this process may run on (its affinity mask), at least 1.
int available_cores();

/// Runs body(part, threads) for each part of `threads`, each on a thread of its own where there are as many; with one
/// it is a plain call. Bodies must not wait for each other.
void parallel(int threads, FunctionRef<void(int thread, int threads)> body);

struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  [[nodiscard]] int64_t size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

/// Share `part` of `parts` of [0, count): contiguous, sizes differing by at most one grain.
inline Range share(int64_t count, int part, int parts, int64_t grain = 1) {
  const int64_t grains = (count + grain - 1) / grain;
  const int64_t each = grains / parts;
  const int64_t extra = grains % parts;
  const int64_t begin = part * each + std::min<int64_t>(part, extra);
  const int64_t end = begin + each + (part < extra ? 1 : 0);
  return {std::min(begin * grain, count), std::min(end * grain, count)};
}

/// How many of `threads` are worth waking for `work` units when one unit of `grain` pays for a thread.
inline int threads_for(int64_t work, int64_t grain, int threads) {
  return static_cast<int>(std::clamp<int64_t>(work / std::max<int64_t>(grain, 1), 1, threads));
}

}  // namespace lockstep::base
