// Histograms in TensorBoard's form: buckets whose limits grow by an eighth to a sixteenth, mirrored for negative
// values, with one bucket around zero. Free functions, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::observe {

struct Histogram {
  double min = 0;
  double max = 0;
  double num = 0;  ///< number of values, without NaN
  double sum = 0;
  double sum_squares = 0;
  std::vector<double> limits;  ///< upper limits, ascending; a run of empty buckets is one bucket
  std::vector<double> counts;  ///< sum is num
};

/// Makes a histogram. With more than 64k values it takes every n-th, with weight n; minimum and maximum are those of
/// all values. Infinite values count as the largest finite ones.
Histogram histogram_of(std::span<const float> values);

}  // namespace lockstep::observe
