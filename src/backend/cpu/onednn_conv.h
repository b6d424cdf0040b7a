// What oneDNN's convolutions and the unfolded ones (unfolded_conv.cpp) share.
#pragma once

#include <string_view>

#include "backend/cpu/onednn.h"
#include "backend/cpu/onednn_api.h"

namespace lockstep::backend::cpu {

/// Scratch starts at whole cache lines.
inline size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

dnnl::memory::desc plain_weights(const Shape& weights);

/// The convolution between two values. Weights, which are always kept as float32, are computed with in `weights_type`.
ConvolutionSpec convolution(const graph::Window& window, const graph::Output& src, const Shape& weights,
                            dnnl::memory::data_type weights_type, const graph::Output& dst, bool bias);

/// Whether Winograd's algorithm is worth trying for a convolution that gives `dst`.
bool winograd_pays(const graph::Window& window, const Shape& dst);

/// Winograd's descriptor where it is wanted and generated code computes it, else that of the direct sum.
template <class Make>
auto choose(const OneDnn& dnn, ConvolutionSpec spec, bool winograd, Make make) {
  if (winograd) {
    spec.algorithm = dnnl::algorithm::convolution_winograd;
    const auto desc = make(dnn.engine, spec);
    if (desc && std::string_view(desc.impl_info_str()).starts_with("jit_wino")) return desc;
  }
  spec.algorithm = dnnl::algorithm::convolution_direct;
  return make(dnn.engine, spec);
}

}  // namespace lockstep::backend::cpu
