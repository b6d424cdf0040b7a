// Convolution in the batch-blocked layout, pooling in any layout, and the reorders around them.
#include "backend/cpu/convert.h"
#include "backend/cpu/kernel_list.h"
#include "backend/cpu/kernels/batch_conv.h"
#include "backend/cpu/kernels/batch_reorder.h"
#include "backend/cpu/kernels/pool.h"

namespace lockstep::backend::cpu {
namespace {

using Kind = graph::Layout::Kind;

BatchConv batch_conv_of(const KernelRequest& request, const Shape& src, int64_t out_channels, int lanes) {
  BatchConv conv;
  conv.lanes = lanes;
  conv.batch = src[0];
  conv.in_channels = src[1];
  conv.in_height = src[2];
  conv.in_width = src[3];
  conv.out_channels = out_channels;
  conv.window = convert(request.node.as<graph::ConvAttrs>().window);
  return conv;
}

size_t scratch_bytes(const BatchConv& conv, ConvPass pass, int threads) {
  return static_cast<size_t>(batch_conv_scratch(conv, pass, threads)) * sizeof(float);
}

/// Describes planes of [height, width, lanes], which covers every layout of an image.
Pool pool_of(const KernelRequest& request, const Shape& src, const graph::Layout& layout) {
  Pool pool;
  pool.lanes = layout.block;
  pool.planes = graph::stored_elements(src, layout) / (layout.block * src[2] * src[3]);
  if (layout.kind == Kind::batch_blocked) pool.channels = src[1];
  pool.in_height = src[2];
  pool.in_width = src[3];
  pool.window = convert(request.node.as<graph::PoolAttrs>().window);
  return pool;
}

}  // namespace

std::unique_ptr<Kernel> batch_conv2d(const KernelRequest& request, const CpuOptions& options) {
  const graph::Layout& layout = request.output().layout;
  if (layout.kind != Kind::batch_blocked) return nullptr;
  const auto& attrs = request.node.as<graph::ConvAttrs>();
  const BatchConv conv = batch_conv_of(request, request.in_shape(0), request.out_shape()[1], layout.block);
  const int threads = options.threads;
  return make_kernel(
      [=, bias = attrs.bias, activation = convert(attrs.activation)](const Binding& m, const StepContext&) {
        batch_conv_forward(conv, m.in(0), m.in(1), bias ? m.in(2) : nullptr, activation, m.out(), m.workspace(),
                           threads);
      },
      scratch_bytes(conv, ConvPass::forward, threads));
}

std::unique_ptr<Kernel> batch_conv2d_grad_input(const KernelRequest& request, const CpuOptions& options) {
  const graph::Layout& layout = request.output().layout;
  if (layout.kind != Kind::batch_blocked) return nullptr;
  const BatchConv conv = batch_conv_of(request, request.out_shape(), request.in_shape(0)[1], layout.block);
  const int threads = options.threads;
  return make_kernel(
      [=](const Binding& m, const StepContext&) {
        batch_conv_backward_data(conv, m.in(0), m.in(1), m.out(), m.workspace(), threads);
      },
      scratch_bytes(conv, ConvPass::backward_data, threads));
}

std::unique_ptr<Kernel> batch_conv2d_grad_weights(const KernelRequest& request, const CpuOptions& options) {
  const graph::Layout& layout = request.input(0).layout;
  if (layout.kind != Kind::batch_blocked) return nullptr;
  const BatchConv conv = batch_conv_of(request, request.in_shape(0), request.in_shape(1)[1], layout.block);
  const bool bias = request.node.as<graph::ConvAttrs>().bias;
  const int threads = options.threads;
  return make_kernel(
      [=](const Binding& m, const StepContext&) {
        batch_conv_backward_weights(conv, m.in(0), m.in(1), m.out(0), bias ? m.out(1) : nullptr, m.workspace(),
                                    threads);
      },
      scratch_bytes(conv, ConvPass::backward_weights, threads));
}

std::unique_ptr<Kernel> vector_pool(const KernelRequest& request, const CpuOptions& options) {
  const Pool pool = pool_of(request, request.in_shape(0), request.input(0).layout);
  const bool largest = request.node.op == graph::Op::max_pool;
  return make_kernel([=, threads = options.threads](const Binding& m, const StepContext&) {
    if (largest) {
      max_pool(pool, m.in(0), m.out(), threads);
    } else {
      average_pool(pool, m.in(0), m.out(), threads);
    }
  });
}

std::unique_ptr<Kernel> vector_pool_grad(const KernelRequest& request, const CpuOptions& options) {
  const Pool pool = pool_of(request, request.out_shape(), request.output().layout);
  const bool through_relu = request.node.as<graph::PoolAttrs>().through_relu;
  const int threads = options.threads;
  if (request.node.op == graph::Op::avg_pool_grad) {
    return make_kernel(
        [=](const Binding& m, const StepContext&) { average_pool_backward(pool, m.in(0), m.out(), threads); });
  }
  return make_kernel([=](const Binding& m, const StepContext&) {
    max_pool_backward(pool, m.in(0), m.in(1), m.out(), through_relu, threads);
  });
}

std::unique_ptr<Kernel> vector_reorder(const KernelRequest& request, const CpuOptions& options) {
  const graph::Layout& from = request.input(0).layout;
  const graph::Layout& to = request.output().layout;
  const Shape& shape = request.out_shape();
  const int64_t batch = shape[0];
  const int64_t rest = shape.elements(1, shape.rank());
  const int threads = options.threads;
  if (from.plain() && to.kind == Kind::batch_blocked) {
    return make_kernel([=, lanes = to.block](const Binding& m, const StepContext&) {
      to_batch_blocked(lanes, batch, rest, m.in(0), m.out(), threads);
    });
  }
  if (to.plain() && from.kind == Kind::batch_blocked) {
    return make_kernel([=, lanes = from.block](const Binding& m, const StepContext&) {
      from_batch_blocked(lanes, batch, rest, m.in(0), m.out(), threads);
    });
  }
  if (from.plain() || to.plain() || from.kind == to.kind) return nullptr;
  const bool to_channels = to.kind == Kind::channel_blocked;
  const BothBlocked both{batch, shape[1], shape.elements(2, shape.rank()), (to_channels ? from : to).block,
                         (to_channels ? to : from).block};
  return make_kernel([=](const Binding& m, const StepContext&) {
    (to_channels ? batch_to_channel_blocked : channel_to_batch_blocked)(both, m.in(0), m.out(), threads);
  });
}

}  // namespace lockstep::backend::cpu
