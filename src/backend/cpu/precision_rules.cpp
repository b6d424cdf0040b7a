#include "backend/cpu/precision_rules.h"

namespace lockstep::backend::cpu {
namespace {

using graph::Op;

/// Least number of output channels: fewer leave most of bfloat16's vectors empty, and our float32 kernels are faster.
constexpr int64_t kEnoughChannels = 32;
/// Block of input channels. oneDNN has bfloat16 kernels for whole blocks of input channels, and also for pictures,
/// except for the gradient of the image.
constexpr int64_t kBlock = 16;
constexpr int64_t kPictureChannels = 3;
/// Smallest product for which casts pay off.
constexpr int64_t kSmallestProduct = int64_t{1} << 27;

bool is_wide(const KernelRequest& request, const Shape& src, const Shape& weights) {
  const graph::Window& w = request.node.as<graph::ConvAttrs>().window;
  const int64_t in = weights[1];
  const int64_t out = weights[0];
  const bool picture = in <= kPictureChannels && out % kBlock == 0 && request.node.op != Op::conv2d_grad_input;
  const bool roomy = (w.stride_h == 1 && w.stride_w == 1) || (src[2] >= 2 * w.kernel_h && src[3] >= 2 * w.kernel_w);
  return out >= kEnoughChannels && (in >= kBlock || picture) && roomy && src.elements() > 0;
}

/// Images and their gradients are bfloat16; weights, biases and their gradients stay float32.
std::optional<PrecisionChoice> conv_precisions(const KernelRequest& request) {
  const auto& node = request.node;
  const bool to_weights = node.op == Op::conv2d_grad_weights;
  const Shape& src = node.op == Op::conv2d_grad_input ? request.out_shape() : request.in_shape(0);
  if (!is_wide(request, src, to_weights ? request.out_shape() : request.in_shape(1))) return std::nullopt;
  std::vector<DType> inputs(node.inputs.size(), DType::f32);
  inputs[0] = DType::bf16;
  if (to_weights) inputs[1] = DType::bf16;
  return PrecisionChoice{std::move(inputs),
                         std::vector<DType>(node.outputs.size(), to_weights ? DType::f32 : DType::bf16)};
}

/// The factors are bfloat16. The product is float32: it is small beside them and may be a gradient.
std::optional<PrecisionChoice> matmul_precisions(const KernelRequest& request) {
  const auto& attrs = request.node.as<graph::MatMulAttrs>();
  const int64_t inner = request.in_shape(0)[attrs.trans_a ? 0 : 1];
  if (2 * request.out_shape().elements() * inner <= kSmallestProduct) return std::nullopt;
  std::vector<DType> inputs(request.node.inputs.size(), DType::f32);
  inputs[0] = inputs[1] = DType::bf16;
  return PrecisionChoice{std::move(inputs), {DType::f32}};
}

std::optional<PrecisionChoice> as_the_first(const KernelRequest& request) {
  if (request.input(0).type.dtype != DType::bf16) return std::nullopt;
  return PrecisionChoice{std::vector<DType>(request.node.inputs.size(), DType::bf16), {DType::bf16}};
}

}  // namespace

std::optional<PrecisionChoice> choose_precisions(const KernelRequest& request) {
  switch (request.node.op) {
    case Op::conv2d:
    case Op::conv2d_grad_input:
    case Op::conv2d_grad_weights:
      return conv_precisions(request);
    case Op::matmul:
      return matmul_precisions(request);
    case Op::relu:
    case Op::relu_grad:
    case Op::max_pool:
    case Op::max_pool_grad:
    case Op::avg_pool:
    case Op::avg_pool_grad:
    case Op::reshape:
      return as_the_first(request);
    default:
      return std::nullopt;
  }
}

}  // namespace lockstep::backend::cpu
