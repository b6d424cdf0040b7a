// An engine slowed down to another network's speed. Each operation takes at least the time of that network, counted
// from the arrival of the last member, and sleeps for the rest. For benchmarks and tests. Waits under about 0.1 ms are
// inexact: a thread takes that long to wake up.
#pragma once

#include <memory>

#include "collective/collective.h"

namespace lockstep::collective {

/// One link per member, used both ways at once.
struct Network {
  double bytes_per_second = 1.25e9;  ///< each way; 10 Gbit/s
  Seconds latency{0};                ///< time of a message
};

/// Returns the time of an all-reduce of `bytes`: each member sends 2 (N - 1) / N of them, in 2 log2 N messages in a
/// row.
Seconds all_reduce_time(const Network& network, int size, size_t bytes);

/// Slows `engine` down, which must not be used by others meanwhile. All members must be throttled.
std::unique_ptr<Collective> throttle(std::shared_ptr<Collective> engine, const Network& network);

}  // namespace lockstep::collective
