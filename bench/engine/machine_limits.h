// What the machine can do at most, measured: the distance to it is what a benchmark should show.
#pragma once

namespace lockstep::bench {

/// Float32 operations from registers, in GFLOP/s: a multiply-add is two.
double measure_gflops(int threads);
/// Reading arrays far larger than the caches, in GB/s.
double measure_bandwidth(int threads);

}  // namespace lockstep::bench
