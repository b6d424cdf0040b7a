// The calls that differ between oneDNN 2.x and 3.x: making primitive descriptors. onednn_api_v2.cpp or
// onednn_api_v3.cpp implements them; CMake chooses by the version found. No other code depends on the version.
//
// All descriptors take their scratchpad from the caller. A descriptor is empty (get(true) is null) if oneDNN has no
// implementation. Data types are those of the memory descriptors. Any thread.
#pragma once

#include <dnnl.hpp>

#include "lockstep/graph.h"

namespace lockstep::backend::cpu {

/// A convolution. For its backward passes, src, weights, bias and dst stand for their gradients where those are wanted.
/// No bias: an empty descriptor. Weights of format `any` get oneDNN's preferred layout.
struct ConvolutionSpec {
  dnnl::memory::desc src;
  dnnl::memory::desc weights;
  dnnl::memory::desc bias;
  dnnl::memory::desc dst;
  dnnl::memory::dims stride;
  dnnl::memory::dims padding_before;
  dnnl::memory::dims padding_after;
  graph::Activation activation = graph::Activation::none;  ///< activation of the forward pass
};

/// c = activation(a b + bias); no bias: an empty descriptor.
struct MatmulSpec {
  dnnl::memory::desc a;
  dnnl::memory::desc b;
  dnnl::memory::desc bias;
  dnnl::memory::desc c;
  graph::Activation activation = graph::Activation::none;
};

dnnl::convolution_forward::primitive_desc convolution_forward(const dnnl::engine& engine, const ConvolutionSpec& spec);
dnnl::convolution_backward_data::primitive_desc convolution_backward_data(const dnnl::engine& engine,
                                                                          const ConvolutionSpec& spec);
dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights(const dnnl::engine& engine,
                                                                                const ConvolutionSpec& spec);
dnnl::matmul::primitive_desc matmul(const dnnl::engine& engine, const MatmulSpec& spec);
dnnl::reorder::primitive_desc reorder(const dnnl::engine& engine, const dnnl::memory::desc& from,
                                      const dnnl::memory::desc& to);

}  // namespace lockstep::backend::cpu
