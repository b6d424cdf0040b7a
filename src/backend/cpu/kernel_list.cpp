#include "backend/cpu/kernel_list.h"

#include <algorithm>

namespace lockstep::backend::cpu {

// Declares all implementations, which only this file uses.

// Fast implementations, by family.
std::unique_ptr<Kernel> vector_unary(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_binary(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_fill(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_gemm(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_bias_add(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_bias_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_reduce(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_softmax(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_softmax_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_softmax_cross_entropy(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_softmax_cross_entropy_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_pool(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_pool_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_lrn(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_lrn_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_affine_grid(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_affine_grid_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_bilinear_sample(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_bilinear_sample_grad_image(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_bilinear_sample_grad_grid(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_max_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_dropout(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_random(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> plain_broadcast_to(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> plain_transpose(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_reorder(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_cast(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_relu_bf16(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_relu_grad_bf16(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_pool_bf16(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> vector_pool_grad_bf16(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> batch_conv2d(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> batch_conv2d_grad_input(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> batch_conv2d_grad_weights(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> winograd_conv2d(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> winograd_conv2d_grad_input(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> winograd_conv2d_grad_weights(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> onednn_unfolded_conv2d(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> onednn_matmul(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> onednn_conv2d(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> onednn_turned_conv2d_grad_input(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> onednn_conv2d_grad_input(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> onednn_conv2d_grad_weights(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> onednn_reorder(const KernelRequest&, const CpuOptions&);

// Plain reference implementations, by family.
std::unique_ptr<Kernel> reference_constant(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_unary(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_binary(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_max_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_matmul(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_bias_add(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_bias_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_conv2d(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_conv2d_grad_input(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_conv2d_grad_weights(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_pool(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_pool_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_lrn(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_lrn_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_affine_grid(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_affine_grid_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_bilinear_sample(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_bilinear_sample_grad_image(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_bilinear_sample_grad_grid(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_softmax(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_softmax_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_cross_entropy(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_cross_entropy_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_softmax_cross_entropy(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_softmax_cross_entropy_grad(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_correct(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_reduce(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_broadcast_to(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_copy(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_transpose(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_concat(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_slice(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_pad_slice(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_dropout(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_random(const KernelRequest&, const CpuOptions&);
std::unique_ptr<Kernel> reference_reorder(const KernelRequest&, const CpuOptions&);

bool all_plain(const KernelRequest& request) {
  const auto& node = request.node;
  const auto plain = [](const graph::Output& output) { return output.layout.plain(); };
  return std::all_of(node.outputs.begin(), node.outputs.end(), plain) &&
         std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](graph::ValueId id) { return plain(request.graph.output(id)); });
}

bool all_alike(const KernelRequest& request) {
  const graph::Output& first = request.output();
  return std::all_of(request.node.inputs.begin(), request.node.inputs.end(), [&](graph::ValueId id) {
    const graph::Output& input = request.graph.output(id);
    return input.layout == first.layout && input.type.shape == first.type.shape;
  });
}

std::span<const Implementation> implementations(graph::Op op) {
  using graph::Op;
  static constexpr Implementation kConstant[]{{"vector", vector_fill}, {"reference", reference_constant}};
  static constexpr Implementation kMatmul[]{
      {"gemm", vector_gemm}, {"onednn", onednn_matmul, true}, {"reference", reference_matmul}};
  static constexpr Implementation kBiasAdd[]{{"vector", vector_bias_add}, {"reference", reference_bias_add}};
  static constexpr Implementation kBiasGrad[]{{"vector", vector_bias_grad}, {"reference", reference_bias_grad}};
  static constexpr Implementation kConv[]{{"batch_conv", batch_conv2d},
                                          {"winograd", winograd_conv2d},
                                          {"onednn unfolded", onednn_unfolded_conv2d},
                                          {"onednn", onednn_conv2d, true},
                                          {"reference", reference_conv2d}};
  static constexpr Implementation kConvGradInput[]{{"batch_conv", batch_conv2d_grad_input},
                                                   {"winograd", winograd_conv2d_grad_input},
                                                   {"onednn turned", onednn_turned_conv2d_grad_input, true},
                                                   {"onednn", onednn_conv2d_grad_input, true},
                                                   {"reference", reference_conv2d_grad_input}};
  static constexpr Implementation kConvGradWeights[]{{"batch_conv", batch_conv2d_grad_weights},
                                                     {"winograd", winograd_conv2d_grad_weights},
                                                     {"onednn", onednn_conv2d_grad_weights, true},
                                                     {"reference", reference_conv2d_grad_weights}};
  static constexpr Implementation kPool[]{
      {"vector", vector_pool_bf16, true}, {"vector", vector_pool}, {"reference", reference_pool}};
  static constexpr Implementation kPoolGrad[]{
      {"vector", vector_pool_grad_bf16, true}, {"vector", vector_pool_grad}, {"reference", reference_pool_grad}};
  static constexpr Implementation kLrn[]{{"vector", vector_lrn}, {"reference", reference_lrn}};
  static constexpr Implementation kLrnGrad[]{{"vector", vector_lrn_grad}, {"reference", reference_lrn_grad}};
  static constexpr Implementation kAffineGrid[]{{"vector", vector_affine_grid}, {"reference", reference_affine_grid}};
  static constexpr Implementation kAffineGridGrad[]{{"vector", vector_affine_grid_grad},
                                                    {"reference", reference_affine_grid_grad}};
  static constexpr Implementation kBilinearSample[]{{"vector", vector_bilinear_sample},
                                                    {"reference", reference_bilinear_sample}};
  static constexpr Implementation kBilinearSampleGradImage[]{{"vector", vector_bilinear_sample_grad_image},
                                                             {"reference", reference_bilinear_sample_grad_image}};
  static constexpr Implementation kBilinearSampleGradGrid[]{{"vector", vector_bilinear_sample_grad_grid},
                                                            {"reference", reference_bilinear_sample_grad_grid}};
  static constexpr Implementation kUnary[]{
      {"vector", vector_relu_bf16, true}, {"vector", vector_unary}, {"reference", reference_unary}};
  static constexpr Implementation kBinary[]{
      {"vector", vector_relu_grad_bf16, true}, {"vector", vector_binary}, {"reference", reference_binary}};
  static constexpr Implementation kMaxGrad[]{{"vector", vector_max_grad}, {"reference", reference_max_grad}};
  static constexpr Implementation kSoftmax[]{{"vector", vector_softmax}, {"reference", reference_softmax}};
  static constexpr Implementation kSoftmaxGrad[]{{"vector", vector_softmax_grad},
                                                 {"reference", reference_softmax_grad}};
  static constexpr Implementation kCrossEntropy[]{{"plain", reference_cross_entropy}};
  static constexpr Implementation kCrossEntropyGrad[]{{"plain", reference_cross_entropy_grad}};
  static constexpr Implementation kSoftmaxCrossEntropy[]{{"vector", vector_softmax_cross_entropy},
                                                         {"reference", reference_softmax_cross_entropy}};
  static constexpr Implementation kSoftmaxCrossEntropyGrad[]{{"vector", vector_softmax_cross_entropy_grad},
                                                             {"reference", reference_softmax_cross_entropy_grad}};
  static constexpr Implementation kCorrect[]{{"plain", reference_correct}};
  static constexpr Implementation kReduce[]{{"vector", vector_reduce}, {"reference", reference_reduce}};
  static constexpr Implementation kBroadcastTo[]{{"plain", plain_broadcast_to}, {"reference", reference_broadcast_to}};
  static constexpr Implementation kCopy[]{{"plain", reference_copy}};
  static constexpr Implementation kTranspose[]{{"plain", plain_transpose}, {"reference", reference_transpose}};
  static constexpr Implementation kConcat[]{{"plain", reference_concat}};
  static constexpr Implementation kSlice[]{{"plain", reference_slice}};
  static constexpr Implementation kPadSlice[]{{"plain", reference_pad_slice}};
  static constexpr Implementation kDropout[]{{"vector", vector_dropout}, {"reference", reference_dropout}};
  static constexpr Implementation kRandom[]{{"vector", vector_random}, {"reference", reference_random}};
  static constexpr Implementation kReorder[]{{"vector", vector_reorder},
                                             {"vector", vector_cast, true},
                                             {"onednn", onednn_reorder, true},
                                             {"reference", reference_reorder, true}};

  switch (op) {
    case Op::input:
    case Op::parameter:
      return {};
    case Op::constant:
      return kConstant;
    case Op::matmul:
      return kMatmul;
    case Op::bias_add:
      return kBiasAdd;
    case Op::bias_grad:
      return kBiasGrad;
    case Op::conv2d:
      return kConv;
    case Op::conv2d_grad_input:
      return kConvGradInput;
    case Op::conv2d_grad_weights:
      return kConvGradWeights;
    case Op::max_pool:
    case Op::avg_pool:
      return kPool;
    case Op::max_pool_grad:
    case Op::avg_pool_grad:
      return kPoolGrad;
    case Op::lrn:
      return kLrn;
    case Op::lrn_grad:
      return kLrnGrad;
    case Op::affine_grid:
      return kAffineGrid;
    case Op::affine_grid_grad:
      return kAffineGridGrad;
    case Op::bilinear_sample:
      return kBilinearSample;
    case Op::bilinear_sample_grad_image:
      return kBilinearSampleGradImage;
    case Op::bilinear_sample_grad_grid:
      return kBilinearSampleGradGrid;
    case Op::relu:
    case Op::tanh:
    case Op::sigmoid:
    case Op::softplus:
    case Op::exp:
    case Op::log:
    case Op::sqrt:
    case Op::square:
    case Op::neg:
    case Op::abs:
    case Op::scale:
    case Op::add_scalar:
      return kUnary;
    case Op::relu_grad:
    case Op::tanh_grad:
    case Op::sigmoid_grad:
    case Op::softplus_grad:
    case Op::abs_grad:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::div:
    case Op::maximum:
    case Op::minimum:
      return kBinary;
    case Op::max_grad:
      return kMaxGrad;
    case Op::softmax:
      return kSoftmax;
    case Op::softmax_grad:
      return kSoftmaxGrad;
    case Op::cross_entropy:
      return kCrossEntropy;
    case Op::cross_entropy_grad:
      return kCrossEntropyGrad;
    case Op::softmax_cross_entropy:
      return kSoftmaxCrossEntropy;
    case Op::softmax_cross_entropy_grad:
      return kSoftmaxCrossEntropyGrad;
    case Op::correct:
      return kCorrect;
    case Op::reduce_sum:
    case Op::reduce_mean:
    case Op::reduce_max:
      return kReduce;
    case Op::broadcast_to:
      return kBroadcastTo;
    case Op::reshape:
    case Op::identity:
      return kCopy;
    case Op::transpose:
      return kTranspose;
    case Op::concat:
      return kConcat;
    case Op::slice:
      return kSlice;
    case Op::pad_slice:
      return kPadSlice;
    case Op::dropout:
      return kDropout;
    case Op::random_uniform:
    case Op::random_normal:
      return kRandom;
    case Op::reorder:
      return kReorder;
  }
  return {};
}

}  // namespace lockstep::backend::cpu
