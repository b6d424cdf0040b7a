// Plain loops for constants and the elementwise ops.
#include "backend/arithmetic.h"
#include "backend/cpu/kernel_list.h"
#include "backend/cpu/strides.h"

namespace lockstep::backend::cpu {

std::unique_ptr<Kernel> reference_constant(const KernelRequest& request, const CpuOptions&) {
  const float value = request.node.as<graph::ScalarAttrs>().value;
  const int64_t count = request.out_shape().elements();
  return make_kernel([=](const Binding& m, const StepContext&) { std::fill_n(m.out(), count, value); });
}

std::unique_ptr<Kernel> reference_unary(const KernelRequest& request, const CpuOptions&) {
  const graph::Op op = request.node.op;
  const auto* scalar = std::get_if<graph::ScalarAttrs>(&request.node.attrs);
  const float alpha = scalar == nullptr ? 0.0F : scalar->value;
  const int64_t count = request.out_shape().elements();
  return make_kernel([=](const Binding& m, const StepContext&) {
    for (int64_t i = 0; i < count; ++i) m.out()[i] = unary_value(op, m.in(0)[i], alpha);
  });
}

std::unique_ptr<Kernel> reference_binary(const KernelRequest& request, const CpuOptions&) {
  const graph::Op op = request.node.op;
  const Shape shape = request.out_shape();
  const Strides a_strides = broadcast_strides(request.in_shape(0), shape);
  const Strides b_strides = broadcast_strides(request.in_shape(1), shape);
  return make_kernel(
      [=](const Binding& m, const StepContext&) {
        auto* a_at = m.workspace<int64_t>();
        for_each(shape, a_strides, [&](int64_t i, int64_t at) { a_at[i] = at; });
        for_each(shape, b_strides,
                 [&](int64_t i, int64_t at) { m.out()[i] = binary_value(op, m.in(0)[a_at[i]], m.in(1)[at]); });
      },
      static_cast<size_t>(shape.elements()) * sizeof(int64_t));
}

std::unique_ptr<Kernel> reference_max_grad(const KernelRequest& request, const CpuOptions&) {
  const int64_t count = request.out_shape().elements();
  return make_kernel([=](const Binding& m, const StepContext&) {
    for (int64_t i = 0; i < count; ++i) m.out()[i] = m.in(0)[i] >= m.in(1)[i] ? m.in(2)[i] : 0.0F;
  });
}

}  // namespace lockstep::backend::cpu
