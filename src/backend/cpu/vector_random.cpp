// Random tensors and dropout by the vector kernels of kernels/random.h.
#include "backend/cpu/kernel_list.h"
#include "backend/cpu/kernels/random.h"
#include "backend/random_rows.h"

namespace lockstep::backend::cpu {
namespace {

RandomRows rows_at(const RandomShape& shape, uint32_t stream, const StepContext& context) {
  return {op_random(context, stream).key(), context.step, context.first_row, shape.rows, shape.width};
}

}  // namespace

std::unique_ptr<Kernel> vector_dropout(const KernelRequest& request, const CpuOptions& options) {
  const graph::RandomAttrs attrs = request.node.as<graph::RandomAttrs>();
  const RandomShape shape = random_rows(request.out_shape());
  const float kept = 1.0F / (1.0F - attrs.a);
  return make_kernel([=, threads = options.threads](const Binding& m, const StepContext& context) {
    dropout(rows_at(shape, attrs.stream, context), attrs.a, kept, m.in(0), m.out(), threads);
  });
}

std::unique_ptr<Kernel> vector_random(const KernelRequest& request, const CpuOptions& options) {
  const graph::RandomAttrs attrs = request.node.as<graph::RandomAttrs>();
  const RandomShape shape = random_rows(request.out_shape());
  const bool normal = request.node.op == graph::Op::random_normal;
  return make_kernel([=, threads = options.threads](const Binding& m, const StepContext& context) {
    const RandomRows rows = rows_at(shape, attrs.stream, context);
    if (normal) {
      random_normal(rows, attrs.a, attrs.b, m.out(), threads);
    } else {
      random_uniform(rows, attrs.a, attrs.b - attrs.a, m.out(), threads);
    }
  });
}

}  // namespace lockstep::backend::cpu
