// Rewrites convolutions as 3x3 convolutions of stride 1 over more channels, which Winograd's algorithm computes
// fastest.
//
// Along each axis, tap t of the kernel is tap j of group g: t = g * step + j * stride. With stride s, s groups of step
// 1 split the image into its s phases; with stride 1, two groups of step 3 split 4 to 6 taps into twice three. The
// unfolded image has a channel per channel and pair of groups, pixel (y, x) of which is pixel (stride y + g step -
// padding, ...) of the image, or 0 outside.
//
// Free functions, threads as given; images are [N][C/b][H][W][b] (b = `block`), or plain [N][C][H][W] as a source.
#pragma once

#include <cstdint>

namespace lockstep::backend::cpu {

/// The unfolding of one axis.
struct UnfoldedAxis {
  int64_t size = 1;      ///< size of the image
  int64_t kernel = 1;    ///< size of the original convolution's kernel
  int64_t stride = 1;    ///< stride of the original convolution
  int64_t padding = 0;   ///< padding before the image
  int64_t groups = 1;    ///< groups of taps
  int64_t step = 0;      ///< taps between groups
  int64_t taps = 1;      ///< taps of the new convolution
  int64_t unfolded = 1;  ///< size of the unfolded image
};

/// Returns the axis for a convolution with `results` pixels along it.
UnfoldedAxis unfolded_axis(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t results);

struct Unfold {
  UnfoldedAxis h, w;
  int64_t channels = 1;       ///< channels of the image
  bool plain_source = false;  ///< false: the channels fill whole blocks
  int block = 16;

  [[nodiscard]] int64_t groups() const { return h.groups * w.groups; }
  [[nodiscard]] int64_t unfolded_channels() const { return channels * groups(); }
  [[nodiscard]] int64_t blocks() const { return (unfolded_channels() + block - 1) / block; }
  /// Returns the place of channel c of groups (gh, gw) among the unfolded channels.
  [[nodiscard]] int64_t channel(int64_t c, int64_t gh, int64_t gw) const {
    return plain_source ? (c * h.groups + gh) * w.groups + gw : (gh * w.groups + gw) * channels + c;
  }
  /// Return the floats of one image, as given and unfolded.
  [[nodiscard]] int64_t image_size() const { return channels * h.size * w.size; }
  [[nodiscard]] int64_t unfolded_size() const { return blocks() * h.unfolded * w.unfolded * block; }
};

/// dst = the unfolded images.
void unfold(const Unfold& u, int64_t images, const float* src, float* dst, int threads);
/// dst = for each pixel, the sum of its unfolded copies; for blocked images of stride 1.
void fold(const Unfold& u, int64_t images, const float* src, float* dst, int threads);

/// Convert between weights [O][C][kernel h][kernel w] and [O][unfolded channels][taps h][taps w], zero where there is
/// no tap.
void unfold_weights(const Unfold& u, int64_t out_channels, const float* src, float* dst);
void fold_weights(const Unfold& u, int64_t out_channels, const float* src, float* dst);

}  // namespace lockstep::backend::cpu
