// Another engine as if on a slower network: each operation takes at least as long as that network would need from the
// moment when everyone has come, and sleeps for the rest. For benchmarks and tests. Shorter waits than some 0.1 ms are
// not exact: that is what a thread takes to wake up.
#pragma once

#include <memory>

#include "collective/collective.h"

namespace lockstep::collective {

/// A link of each member, used both ways at once.
struct Network {
  double bytes_per_second = 1.25e9;  ///< each way; 10 Gbit/s
  Seconds latency{0};                ///< of a message
};

/// What an all-reduce of so many bytes takes: each member sends 2 (N - 1) / N of them, in 2 log2 N messages in a row.
Seconds all_reduce_time(const Network& network, int size, size_t bytes);

/// Shares `engine` with nobody else while it is used. All members must be throttled.
std::unique_ptr<Collective> throttle(std::shared_ptr<Collective> engine, const Network& network);

}  // namespace lockstep::collective
