#include "backend/cpu/layout_rules.h"

#include <algorithm>

#include "backend/cpu/isa.h"
#include "backend/cpu/kernels/batch_layout.h"

namespace lockstep::backend::cpu {
namespace {

using graph::Layout;
using graph::Op;
using Kind = graph::Layout::Kind;

/// Most (input channel, output channel) pairs for which our batch-blocked convolutions win: oneDNN pads every channel
/// count to a whole vector.
constexpr int64_t kFewChannelPairs = 512;
/// Least number of output channels from which oneDNN wastes nothing, however few input channels there are.
constexpr int64_t kManyOutChannels = 48;
/// Channels of the images that oneDNN's first-layer kernels read in plain order.
constexpr int64_t kPlainImageChannels = 3;

/// Block of bfloat16's channels.
constexpr int kBf16Block = 16;

/// Smallest batch. Smaller batches get the layout of this one: padding images is still cheaper than padding channels.
constexpr int64_t kSmallestBatch = 4;

struct ConvLayouts {
  Layout src;
  Layout dst;
};

/// oneDNN 2.6 reads past the channels' end with SSE4.1 when they do not fill its blocks of 8.
bool onednn_is_safe(int64_t out_channels) { return active_isa() != Isa::sse4 || out_channels % 8 == 0; }

Layout channels_in_blocks(int64_t block) { return {Kind::channel_blocked, static_cast<int>(block)}; }

/// oneDNN's AMX kernels read and write channels last alone.
ConvLayouts channels_last_layouts(int64_t in_channels, int64_t out_channels) {
  return {in_channels == 1 ? Layout{} : channels_in_blocks(in_channels), channels_in_blocks(out_channels)};
}

bool fills_blocks(int64_t channels) { return channels % kBf16Block == 0; }

ConvLayouts conv_layouts(const Shape& src, int64_t out_channels, DType image, bool channels_last) {
  const bool bf16 = image == DType::bf16;  // only if AVX-512 is in use
  const bool full = fills_blocks(out_channels) && (fills_blocks(src[1]) || src[1] <= kPlainImageChannels);
  if (bf16 && channels_last && full) return channels_last_layouts(src[1], out_channels);
  const bool wide = out_channels >= kManyOutChannels && active_isa() != Isa::sse4;
  const bool few = src[1] * out_channels <= kFewChannelPairs && !wide;
  if (!bf16 && (few || !onednn_is_safe(out_channels))) {
    const Layout blocked{Kind::batch_blocked, batch_lanes(std::max(src[0], kSmallestBatch))};
    return {blocked, blocked};
  }
  const Layout channels = channels_in_blocks(active_isa() == Isa::avx512 ? 16 : 8);
  return {src[1] <= kPlainImageChannels ? Layout{} : channels, channels};
}

/// Puts all operands into the first blocked layout found among the inputs of the output's shape.
std::optional<LayoutChoice> follow(const KernelRequest& request) {
  const auto& node = request.node;
  Layout chosen;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (request.in_shape(i) != request.out_shape()) return std::nullopt;
    if (chosen.plain()) chosen = request.input(i).layout;
  }
  return LayoutChoice{std::vector<Layout>(node.inputs.size(), chosen), {chosen}};
}

/// A pool keeps its image's layout. Its gradient gets the layout of the forward image, or of dy.
std::optional<LayoutChoice> follow_first(const KernelRequest& request) {
  Layout layout = request.input(0).layout;
  const bool wide = layout.kind == Kind::channel_blocked && layout.block > kBf16Block;
  // bfloat16's kernels support only whole blocks of channels, float32's only blocks of one vector.
  if (request.input(0).type.dtype == DType::bf16 ? !wide || !fills_blocks(layout.block) : wide)
    layout = channels_in_blocks(kBf16Block);
  const bool wider_than_vectors = layout.kind == Kind::channel_blocked && active_isa() == Isa::sse4;
  if (wider_than_vectors) return std::nullopt;
  return LayoutChoice{std::vector<Layout>(request.node.inputs.size(), layout), {layout}};
}

/// A normalisation sums neighbouring channels, and the padding of a block may hold any value (softplus(0) is not 0). So
/// it accepts only full blocks.
std::optional<LayoutChoice> follow_full_blocks(const KernelRequest& request) {
  const Layout& layout = request.input(0).layout;
  if (layout.kind == Kind::channel_blocked && request.out_shape()[1] % layout.block != 0) return std::nullopt;
  const bool wide = layout.kind == Kind::channel_blocked && layout.block > kBf16Block && fills_blocks(layout.block);
  if (wide) return LayoutChoice{std::vector<Layout>(request.node.inputs.size(), layout), {layout}};
  return follow_first(request);
}

/// A reshape that keeps the batch axis is free in the batch-blocked layout.
std::optional<LayoutChoice> follow_reshape(const KernelRequest& request) {
  const Layout layout = request.input(0).layout;
  const Shape& from = request.in_shape(0);
  const Shape& to = request.out_shape();
  const bool keeps_batch = from.rank() > 0 && to.rank() > 0 && from[0] == to[0];
  if (layout.kind != Kind::batch_blocked || !keeps_batch) return std::nullopt;
  return LayoutChoice{{layout}, {layout}};
}

LayoutChoice conv_choice(const KernelRequest& request, bool channels_last) {
  const Layout plain;
  const DType image = request.input(0).type.dtype;
  if (request.node.op == Op::conv2d_grad_input) {
    const ConvLayouts layouts = conv_layouts(request.out_shape(), request.in_shape(0)[1], image, channels_last);
    if (!layouts.src.plain()) return {{layouts.dst, plain}, {layouts.src}};
    // oneDNN reads plain images but has no generated code to write them; with AVX2, none for their padded channels
    // either.
    const Layout written = active_isa() == Isa::avx512 ? layouts.dst : plain;
    return {{written, plain}, {written}};
  }
  if (request.node.op == Op::conv2d_grad_weights) {
    const ConvLayouts layouts = conv_layouts(request.in_shape(0), request.in_shape(1)[1], image, channels_last);
    return {{layouts.src, layouts.dst}, std::vector<Layout>(request.node.outputs.size(), plain)};
  }
  const ConvLayouts layouts = conv_layouts(request.in_shape(0), request.out_shape()[1], image, channels_last);
  std::vector<Layout> inputs(request.node.inputs.size(), plain);
  inputs[0] = layouts.src;
  return {std::move(inputs), {layouts.dst}};
}

}  // namespace

std::optional<LayoutChoice> choose_layouts(const KernelRequest& request, bool channels_last) {
  switch (request.node.op) {
    case Op::conv2d:
    case Op::conv2d_grad_input:
    case Op::conv2d_grad_weights:
      return conv_choice(request, channels_last);
    case Op::max_pool:
    case Op::avg_pool:
    case Op::max_pool_grad:
    case Op::avg_pool_grad:
      return follow_first(request);
    case Op::lrn:
    case Op::lrn_grad:
      return follow_full_blocks(request);
    case Op::relu:
    case Op::tanh:
    case Op::sigmoid:
    case Op::softplus:
    case Op::square:
    case Op::neg:
    case Op::abs:
    case Op::scale:
    case Op::relu_grad:
    case Op::tanh_grad:
    case Op::sigmoid_grad:
    case Op::softplus_grad:
    case Op::add:
    case Op::sub:
    case Op::mul:
    case Op::maximum:
    case Op::minimum:
      return follow(request);
    case Op::reorder:  // a cast; the reorders of the batch-blocked layout support float32 only
      return request.input(0).layout.kind == Kind::batch_blocked ? std::nullopt : follow(request);
    case Op::reshape:
      return follow_reshape(request);
    default:
      return std::nullopt;
  }
}

}  // namespace lockstep::backend::cpu
