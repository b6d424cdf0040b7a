// What the machine can do at most, measured: the distance to it is what a benchmark should show.
#pragma once

namespace lockstep::bench {

struct MachineLimits {
  double gflops = 0;                ///< float32 multiply-adds from registers
  double gigabytes_per_second = 0;  ///< read from memory, arrays far larger than the caches
};

MachineLimits measure_limits(int threads);

}  // namespace lockstep::bench
