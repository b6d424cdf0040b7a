// 2-d convolution in the batch-blocked layout (batch_layout.h): forward, backward data, backward weights.
//
// Lanes are images, so weights are read as broadcast scalars from their plain order [out, in, height, width] and
// no channel count wastes lanes. Padding is never read: borders are computed with fewer taps.
#pragma once

#include <cstdint>

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/window.h"

namespace lockstep::backend::cpu {

struct BatchConv {
  int lanes = 0;  ///< result of batch_lanes(batch)
  int64_t batch = 0;
  int64_t in_channels = 0;
  int64_t in_height = 0;
  int64_t in_width = 0;
  int64_t out_channels = 0;
  Window2d window;

  [[nodiscard]] int64_t out_height() const { return window.out_height(in_height); }
  [[nodiscard]] int64_t out_width() const { return window.out_width(in_width); }
};

enum class ConvPass { forward, backward_data, backward_weights };

/// Returns the floats of scratch that this pass needs (may be 0); the scratch is 64-byte aligned.
int64_t batch_conv_scratch(const BatchConv& conv, ConvPass pass, int threads);

/// dst = activation(conv(src, weights) + bias); `bias` may be null.
void batch_conv_forward(const BatchConv& conv, const float* src, const float* weights, const float* bias,
                        Activation activation, float* dst, float* scratch, int threads);

void batch_conv_backward_data(const BatchConv& conv, const float* diff_dst, const float* weights, float* diff_src,
                              float* scratch, int threads);

/// Writes diff_weights in plain order and, unless null, diff_bias[out_channels]. Pad lanes of diff_dst must be zero.
void batch_conv_backward_weights(const BatchConv& conv, const float* src, const float* diff_dst, float* diff_weights,
                                 float* diff_bias, float* scratch, int threads);

}  // namespace lockstep::backend::cpu
