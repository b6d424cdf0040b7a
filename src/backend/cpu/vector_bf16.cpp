// bfloat16: casts, ReLU and pooling, by our own vector kernels.
#include "backend/cpu/convert.h"
#include "backend/cpu/kernel_list.h"
#include "backend/cpu/kernels/bf16.h"
#include "backend/cpu/kernels/pool_bf16.h"

namespace lockstep::backend::cpu {
namespace {

using graph::Op;

bool all_bf16(const KernelRequest& request) {
  for (size_t i = 0; i < request.node.inputs.size(); ++i) {
    if (request.input(i).type.dtype != DType::bf16) return false;
  }
  return request.output().type.dtype == DType::bf16;
}

bool in_pool_layout(const graph::Layout& layout) {
  return layout.kind == graph::Layout::Kind::channel_blocked && layout.block % kBf16PoolLanes == 0;
}

Pool pool_of(const KernelRequest& request, const graph::Output& src) {
  Pool pool;
  const Shape& shape = src.type.shape;
  pool.lanes = src.layout.block;
  pool.in_height = shape[2];
  pool.in_width = shape[3];
  pool.planes = graph::stored_elements(shape, src.layout) / (pool.lanes * shape[2] * shape[3]);
  pool.window = convert(request.node.as<graph::PoolAttrs>().window);
  return pool;
}

}  // namespace

std::unique_ptr<Kernel> vector_cast(const KernelRequest& request, const CpuOptions& options) {
  const graph::Output& from = request.input(0);
  const graph::Output& to = request.output();
  if (from.layout != to.layout) return nullptr;
  const int64_t count = graph::stored_elements(to.type.shape, to.layout);
  const int threads = options.threads;
  if (from.type.dtype == DType::f32 && to.type.dtype == DType::bf16) {
    return make_kernel([=](const Binding& m, const StepContext&) { to_bf16(m.in(0), m.out<Bf16>(), count, threads); });
  }
  if (from.type.dtype == DType::bf16 && to.type.dtype == DType::f32) {
    return make_kernel(
        [=](const Binding& m, const StepContext&) { from_bf16(m.in<Bf16>(0), m.out(), count, threads); });
  }
  return nullptr;
}

std::unique_ptr<Kernel> vector_relu_bf16(const KernelRequest& request, const CpuOptions& options) {
  if (request.node.op != Op::relu || !all_alike(request) || !all_bf16(request)) return nullptr;
  const int64_t count = graph::stored_elements(request.out_shape(), request.output().layout);
  return make_kernel([=, threads = options.threads](const Binding& m, const StepContext&) {
    relu_bf16(m.in<Bf16>(0), m.out<Bf16>(), count, threads);
  });
}

std::unique_ptr<Kernel> vector_relu_grad_bf16(const KernelRequest& request, const CpuOptions& options) {
  if (request.node.op != Op::relu_grad || !all_alike(request) || !all_bf16(request)) return nullptr;
  const int64_t count = graph::stored_elements(request.out_shape(), request.output().layout);
  return make_kernel([=, threads = options.threads](const Binding& m, const StepContext&) {
    relu_grad_bf16(m.in<Bf16>(0), m.in<Bf16>(1), m.out<Bf16>(), count, threads);
  });
}

std::unique_ptr<Kernel> vector_pool_bf16(const KernelRequest& request, const CpuOptions& options) {
  if (!all_bf16(request) || !in_pool_layout(request.input(0).layout)) return nullptr;
  const Pool pool = pool_of(request, request.input(0));
  const bool largest = request.node.op == Op::max_pool;
  return make_kernel([=, threads = options.threads](const Binding& m, const StepContext&) {
    (largest ? max_pool_bf16 : average_pool_bf16)(pool, m.in<Bf16>(0), m.out<Bf16>(), threads);
  });
}

std::unique_ptr<Kernel> vector_pool_grad_bf16(const KernelRequest& request, const CpuOptions& options) {
  if (!all_bf16(request) || !in_pool_layout(request.output().layout)) return nullptr;
  const Pool pool = pool_of(request, request.output());
  const bool through_relu = request.node.as<graph::PoolAttrs>().through_relu;
  const int threads = options.threads;
  const auto scratch = static_cast<size_t>(pool_bf16_scratch(pool, threads)) * sizeof(float);
  if (request.node.op == Op::avg_pool_grad) {
    return make_kernel(
        [=](const Binding& m, const StepContext&) {
          average_pool_bf16_backward(pool, m.in<Bf16>(0), m.out<Bf16>(), m.workspace(), threads);
        },
        scratch);
  }
  return make_kernel(
      [=](const Binding& m, const StepContext&) {
        max_pool_bf16_backward(pool, m.in<Bf16>(0), m.in<Bf16>(1), m.out<Bf16>(), through_relu, m.workspace(), threads);
      },
      scratch);
}

}  // namespace lockstep::backend::cpu
