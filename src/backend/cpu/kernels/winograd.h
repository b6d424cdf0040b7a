// 3x3 convolutions of stride 1 by Winograd's algorithm F(4x4, 3x3): tiles of 6x6 pixels and the weights are transformed
// so that 36 matrix products over all channels, one per transformed point, give tiles of 4x4 results with a quarter of
// the multiplications. Rounding is about five times that of the direct sum.
//
// Images are [N][C/b][H][W][b], both channel counts whole blocks. Free functions, threads as given; `scratch` and the
// transformed weights belong to the caller. The same thread count gives the same bits.
#pragma once

#include <cstdint>

namespace lockstep::backend::cpu {

struct Winograd {
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  int64_t in_height = 0;
  int64_t in_width = 0;
  int64_t out_height = 0;
  int64_t out_width = 0;
  int64_t pad_top = 0;
  int64_t pad_left = 0;
  int block = 8;

  [[nodiscard]] int64_t tiles_high() const { return (out_height + 3) / 4; }
  [[nodiscard]] int64_t tiles_wide() const { return (out_width + 3) / 4; }
  [[nodiscard]] int64_t tiles() const { return tiles_high() * tiles_wide(); }
  [[nodiscard]] int64_t image_size() const { return in_channels * in_height * in_width; }
  [[nodiscard]] int64_t result_size() const { return out_channels * out_height * out_width; }
};

/// The convolution whose forward pass is the gradient of the input of `w`.
Winograd winograd_backward(const Winograd& w);

/// Returns the floats of transformed weights or their gradients.
int64_t winograd_weights_size(const Winograd& w);
/// Returns the floats of scratch that the passes below need for this many images at once.
int64_t winograd_scratch(const Winograd& w, int64_t images);

/// Transforms plain weights [O][C][3][3]. With `backward`, `w` is winograd_backward of the convolution they belong to.
void winograd_weights(const Winograd& w, bool backward, const float* src, float* dst, int threads);

/// dst = conv(src, weights) + bias, through ReLU if requested; no bias: null.
void winograd_forward(const Winograd& w, int64_t images, const float* src, const float* weights, const float* bias,
                      bool relu, float* dst, float* scratch, int threads);

/// Computes transformed gradients of the weights; writes them, or adds to the present values.
void winograd_grad_weights(const Winograd& w, int64_t images, const float* src, const float* diff_dst, bool add,
                           float* diff_weights, float* scratch, int threads);
/// Converts transformed gradients to plain ones [O][C][3][3].
void winograd_plain_gradients(const Winograd& w, const float* src, float* dst, int threads);

/// dst[o] = the sum of channel o of all images.
void channel_sums(const Winograd& w, int64_t images, const float* diff_dst, float* dst, int threads);

}  // namespace lockstep::backend::cpu
