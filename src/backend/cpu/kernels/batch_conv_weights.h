// Arguments of a thread that computes its share of a convolution's gradient by the weights.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/parallel.h"

namespace lockstep::backend::cpu {

/// Strides of src and diff_dst count vectors of `lanes`.
struct WeightsJob {
  int lanes = 0;
  int64_t src_channels = 0;
  int64_t src_height = 0;
  int64_t src_width = 0;
  int64_t src_plane = 0;
  int64_t dst_channels = 0;
  int64_t dst_height = 0;
  int64_t dst_width = 0;
  int64_t dst_plane = 0;
  int64_t kernel_height = 0;
  int64_t kernel_width = 0;
  int64_t stride_rows = 1;
  int64_t stride = 1;  ///< stride of columns
  int64_t pad_top = 0;
  int64_t pad_left = 0;
  int64_t rows = 0;   ///< rows of diff_dst in all blocks
  int64_t group = 1;  ///< rows processed together, so that they stay in cache
  int strips = 1;     ///< strips of rows, each with sums of its own
  const float* src = nullptr;
  const float* diff_dst = nullptr;

  [[nodiscard]] int64_t weight_index(int64_t out, int64_t in, int64_t row) const {
    return ((out * src_channels + in) * kernel_height + row) * kernel_width;
  }

  /// Returns the outputs in [0, outs) whose source position out * step + offset lies in [0, size).
  static base::Range inside(int64_t outs, int64_t step, int64_t offset, int64_t size) {
    const int64_t begin = std::clamp<int64_t>((std::max<int64_t>(-offset, 0) + step - 1) / step, 0, outs);
    const int64_t end = size - offset <= 0 ? 0 : (size - offset + step - 1) / step;
    return {begin, std::clamp(end, begin, outs)};
  }

  /// Returns the output rows for which this kernel row meets the image.
  [[nodiscard]] base::Range valid_rows(int64_t kernel_row) const {
    return inside(dst_height, stride_rows, kernel_row - pad_top, src_height);
  }

  /// Returns the output columns for which all these taps meet the image.
  [[nodiscard]] base::Range inner_columns(base::Range taps) const {
    const base::Range low = inside(dst_width, stride, taps.begin - pad_left, src_width);
    const base::Range high = inside(dst_width, stride, taps.end - 1 - pad_left, src_width);
    const int64_t begin = std::max(low.begin, high.begin);
    return {begin, std::max(begin, std::min(low.end, high.end))};
  }
};

/// Places of the sums of the strips: strip s has its weights at `weights + s * stride`, and its biases, unless `biases`
/// is null, at `biases + s * stride`.
struct WeightsSums {
  float* weights = nullptr;
  float* biases = nullptr;
  int64_t stride = 0;
};

}  // namespace lockstep::backend::cpu
