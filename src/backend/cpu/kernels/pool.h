// Max and average pooling over planes of [height, width, lanes]: the batch-blocked layout (planes = blocks * channels,
// lanes as in batch_layout.h) and plain NCHW (planes = N * C, lanes = 1).
//
// Padding never wins a maximum and is not counted in an average. On equal values the first in row-major window order
// wins and takes the whole gradient, as in PyTorch. Windows must overlap the image (padding < kernel).
#pragma once

#include <cstdint>

#include "backend/cpu/kernels/window.h"

namespace lockstep::backend::cpu {

struct Pool {
  int lanes = 1;
  int64_t planes = 0;
  int64_t in_height = 0;
  int64_t in_width = 0;
  Window2d window;
  int64_t channels = 1;  ///< neighbouring planes of the same images; divides `planes`

  [[nodiscard]] int64_t out_height() const { return window.out_height(in_height); }
  [[nodiscard]] int64_t out_width() const { return window.out_width(in_width); }
  /// Returns true if every pixel belongs to exactly one window of kernel x kernel: no padding, no overlap, no rest.
  [[nodiscard]] bool tiles_exactly(int64_t kernel) const {
    return window.kernel_height == kernel && window.kernel_width == kernel && window.stride_height == kernel &&
           window.stride_width == kernel && window.pad_top == 0 && window.pad_left == 0 &&
           in_height == out_height() * kernel && in_width == out_width() * kernel;
  }
};

/// Planes cut into strips of equal height, for threads to share; `pool` is the pool of one strip.
struct Strips {
  Pool pool;
  int64_t each = 1;  ///< strips of a plane
};

void max_pool(const Pool& pool, const float* src, float* dst, int threads);

/// Finds the maxima again from `src`. With `through_relu`, src is the output of a ReLU and diff_src is the gradient of
/// that ReLU's input: windows whose maximum is not positive pass no gradient.
void max_pool_backward(const Pool& pool, const float* src, const float* diff_dst, float* diff_src, bool through_relu,
                       int threads);

void average_pool(const Pool& pool, const float* src, float* dst, int threads);

void average_pool_backward(const Pool& pool, const float* diff_dst, float* diff_src, int threads);

}  // namespace lockstep::backend::cpu
