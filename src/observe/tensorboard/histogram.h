// Histograms as TensorBoard shows them: buckets whose limits grow by an eighth to a sixteenth, mirrored for negative
// values, with one bucket around zero. Free functions, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lockstep::observe {

struct Histogram {
  double min = 0;
  double max = 0;
  double num = 0;  ///< values that are numbers; what is not one is left out
  double sum = 0;
  double sum_squares = 0;
  std::vector<double> limits;  ///< upper ones, ascending; a run of empty buckets is one
  std::vector<double> counts;  ///< add up to num
};

/// Of more than 64k values every n-th is looked at and stands for n; minimum and maximum are those of all. Infinite
/// values count as the largest finite ones.
Histogram histogram_of(std::span<const float> values);

}  // namespace lockstep::observe
