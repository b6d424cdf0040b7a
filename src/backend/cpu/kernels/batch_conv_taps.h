// One computation for forward convolution and its gradient by the data. Every output is a sum over taps, and a tap
// pairs one source position with one weight. Forward, tap t of output i reads source i * stride - pad + t. Backward,
// outputs of one residue modulo the stride read sources in the opposite direction of the taps.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cpu/kernels/activation.h"
#include "base/parallel.h"

namespace lockstep::backend::cpu {

/// One direction (rows or columns) of such a computation.
struct TapAxis {
  int64_t first = 0;  ///< outputs computed: first, first + step, ... (`count` of them)
  int64_t step = 1;
  int64_t count = 0;
  int64_t base = 0;  ///< source position of tap 0 of output 0, and its growth per output
  int64_t base_step = 1;
  int64_t direction = 1;  ///< source positions per tap: +1 or -1
  int64_t taps = 0;
  int64_t kernel_first = 0;  ///< kernel position of tap 0, and its growth per tap
  int64_t kernel_step = 1;
  int64_t size = 0;  ///< source positions

  /// Returns the taps of output i that lie inside the source.
  [[nodiscard]] base::Range valid_taps(int64_t i) const {
    const int64_t at = base + i * base_step;
    base::Range range{std::max<int64_t>(0, -at), std::min(taps, size - at)};
    if (direction < 0) range = {std::max<int64_t>(0, at - size + 1), std::min(taps, at + 1)};
    range.end = std::max(range.begin, range.end);
    return range;
  }

  /// Returns the outputs with all taps inside the source.
  [[nodiscard]] base::Range interior() const {
    base::Range range{0, count};
    while (range.begin < count && valid_taps(range.begin).size() < taps) ++range.begin;
    while (range.end > range.begin && valid_taps(range.end - 1).size() < taps) --range.end;
    return range;
  }
};

inline TapAxis forward_axis(int64_t in_size, int64_t out_size, int64_t kernel, int64_t stride, int64_t pad) {
  return {.count = out_size, .base = -pad, .base_step = stride, .taps = kernel, .size = in_size};
}

/// Returns the axis of the outputs (positions of the image) congruent to `residue` modulo the stride.
inline TapAxis backward_axis(int64_t in_size, int64_t out_size, int64_t kernel, int64_t stride, int64_t pad,
                             int64_t residue) {
  const int64_t first_tap = (residue + pad) % stride;
  return {.first = residue,
          .step = stride,
          .count = std::max<int64_t>(0, (in_size - residue + stride - 1) / stride),
          .base = (residue + pad - first_tap) / stride,
          .direction = -1,
          .taps = std::max<int64_t>(0, (kernel - first_tap + stride - 1) / stride),
          .kernel_first = first_tap,
          .kernel_step = stride,
          .size = out_size};
}

/// A whole computation. Strides of src and dst count vectors of `lanes`, those of weights floats.
struct TapsJob {
  int lanes = 0;
  TapAxis rows;
  TapAxis columns;
  int64_t blocks = 0;
  int64_t src_channels = 0;
  int64_t src_width = 0;
  int64_t src_plane = 0;
  int64_t dst_channels = 0;
  int64_t dst_width = 0;
  int64_t dst_plane = 0;
  int64_t weights_dst = 0;  ///< floats between weights of neighbouring dst channels
  int64_t weights_src = 0;
  int64_t weights_row = 0;
  const float* src = nullptr;
  const float* weights = nullptr;
  const float* bias = nullptr;
  float* dst = nullptr;
  Activation activation = Activation::none;
};

}  // namespace lockstep::backend::cpu
