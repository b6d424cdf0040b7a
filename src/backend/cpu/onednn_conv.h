// Parts that oneDNN's convolutions and the unfolded ones (unfolded_conv.cpp) share.
#pragma once

#include "backend/cpu/onednn.h"
#include "backend/cpu/onednn_api.h"

namespace lockstep::backend::cpu {

/// Scratch starts at whole cache lines.
inline size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

dnnl::memory::desc plain_weights(const Shape& weights);

constexpr auto kF32 = dnnl::memory::data_type::f32;

/// Describes the two images of a convolution. If one has channels last, so has the other, since 16 channels in one
/// block of 16 are that as well, and so is a single plain channel.
std::pair<dnnl::memory::desc, dnnl::memory::desc> describe_images(const graph::Output& a, const graph::Output& b);

/// Returns the convolution between two values. Weights are stored as float32 and computed with as `weights_type`.
ConvolutionSpec convolution(const graph::Window& window, const graph::Output& src, const Shape& weights,
                            dnnl::memory::data_type weights_type, const graph::Output& dst, bool bias);

}  // namespace lockstep::backend::cpu
