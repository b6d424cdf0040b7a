// oneDNN 3.x: primitive descriptors in one step, and elementwise post-ops without a scale.
#include "backend/cpu/onednn_api.h"

namespace lockstep::backend::cpu {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;

constexpr bool kMayBeEmpty = true;

dnnl::primitive_attr attributes(graph::Activation activation) {
  dnnl::post_ops after;
  if (activation == graph::Activation::relu) after.append_eltwise(algorithm::eltwise_relu, 0, 0);
  if (activation == graph::Activation::tanh) after.append_eltwise(algorithm::eltwise_tanh, 0, 0);
  if (activation == graph::Activation::sigmoid) after.append_eltwise(algorithm::eltwise_logistic, 0, 0);
  dnnl::primitive_attr result;
  result.set_post_ops(after);
  result.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return result;
}

/// Returns the forward pass over the same tensors, which backward descriptors need as a hint.
dnnl::convolution_forward::primitive_desc hint(const dnnl::engine& engine, const ConvolutionSpec& spec) {
  const dnnl::memory::desc weights(spec.weights.get_dims(), spec.src.get_data_type(), dnnl::memory::format_tag::any);
  return {engine,
          prop_kind::forward_training,
          algorithm::convolution_direct,
          spec.src,
          weights,
          spec.dst,
          spec.stride,
          spec.padding_before,
          spec.padding_after,
          dnnl::primitive_attr(),
          kMayBeEmpty};
}

}  // namespace

dnnl::convolution_forward::primitive_desc convolution_forward(const dnnl::engine& engine, const ConvolutionSpec& spec) {
  return {engine,
          prop_kind::forward_training,
          algorithm::convolution_direct,
          spec.src,
          spec.weights,
          spec.bias,
          spec.dst,
          spec.stride,
          spec.padding_before,
          spec.padding_after,
          attributes(spec.activation),
          kMayBeEmpty};
}

dnnl::convolution_backward_data::primitive_desc convolution_backward_data(const dnnl::engine& engine,
                                                                          const ConvolutionSpec& spec) {
  const auto forward = hint(engine, spec);
  if (!forward) return {};
  return {
      engine,      algorithm::convolution_direct, spec.src,           spec.weights, spec.dst,
      spec.stride, spec.padding_before,           spec.padding_after, forward,      attributes(graph::Activation::none),
      kMayBeEmpty};
}

dnnl::convolution_backward_weights::primitive_desc convolution_backward_weights(const dnnl::engine& engine,
                                                                                const ConvolutionSpec& spec) {
  const auto forward = hint(engine, spec);
  if (!forward) return {};
  return {engine,
          algorithm::convolution_direct,
          spec.src,
          spec.weights,
          spec.bias,
          spec.dst,
          spec.stride,
          spec.padding_before,
          spec.padding_after,
          forward,
          attributes(graph::Activation::none),
          kMayBeEmpty};
}

dnnl::matmul::primitive_desc matmul(const dnnl::engine& engine, const MatmulSpec& spec) {
  return {engine, spec.a, spec.b, spec.bias, spec.c, attributes(spec.activation), kMayBeEmpty};
}

dnnl::reorder::primitive_desc reorder(const dnnl::engine& engine, const dnnl::memory::desc& from,
                                      const dnnl::memory::desc& to) {
  return {engine, from, engine, to, attributes(graph::Activation::none), kMayBeEmpty};
}

}  // namespace lockstep::backend::cpu
