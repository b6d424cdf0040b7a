// Measures the machine's limits; a benchmark shows the distance to them.
#pragma once

namespace lockstep::bench {

/// Measures float32 operations from registers, in GFLOP/s; a multiply-add counts as two.
double measure_gflops(int threads);
/// Measures reads of arrays far larger than the caches, in GB/s.
double measure_bandwidth(int threads);

}  // namespace lockstep::bench
