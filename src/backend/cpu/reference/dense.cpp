// Plain loops for matrix products and biases; sums in double.
#include "backend/arithmetic.h"
#include "backend/cpu/kernel_list.h"

namespace lockstep::backend::cpu {

std::unique_ptr<Kernel> reference_matmul(const KernelRequest& request, const CpuOptions&) {
  if (!all_plain(request)) return nullptr;
  const graph::MatMulAttrs attrs = request.node.as<graph::MatMulAttrs>();
  const int64_t rows = request.out_shape()[0];
  const int64_t columns = request.out_shape()[1];
  const int64_t inner = request.in_shape(0)[attrs.trans_a ? 0 : 1];
  return make_kernel([=](const Binding& m, const StepContext&) {
    const auto a = [&](int64_t r, int64_t k) { return m.in(0)[attrs.trans_a ? k * rows + r : r * inner + k]; };
    const auto b = [&](int64_t k, int64_t c) { return m.in(1)[attrs.trans_b ? c * inner + k : k * columns + c]; };
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        double sum = attrs.bias ? m.in(2)[c] : 0.0;
        for (int64_t k = 0; k < inner; ++k) sum += static_cast<double>(a(r, k)) * b(k, c);
        m.out()[r * columns + c] = activate(attrs.activation, static_cast<float>(sum));
      }
    }
  });
}

std::unique_ptr<Kernel> reference_bias_add(const KernelRequest& request, const CpuOptions&) {
  if (!all_plain(request)) return nullptr;
  const Shape& shape = request.out_shape();
  const int64_t channels = shape[1];
  const int64_t inner = shape.elements(2, shape.rank());
  const int64_t count = shape.elements();
  return make_kernel([=](const Binding& m, const StepContext&) {
    for (int64_t i = 0; i < count; ++i) m.out()[i] = m.in(0)[i] + m.in(1)[i / inner % channels];
  });
}

std::unique_ptr<Kernel> reference_bias_grad(const KernelRequest& request, const CpuOptions&) {
  if (!all_plain(request)) return nullptr;
  const Shape shape = request.in_shape(0);
  const int64_t inner = shape.elements(2, shape.rank());
  return make_kernel([=](const Binding& m, const StepContext&) {
    for (int64_t c = 0; c < shape[1]; ++c) {
      double sum = 0;
      for (int64_t n = 0; n < shape[0]; ++n) {
        const float* plane = m.in(0) + (n * shape[1] + c) * inner;
        for (int64_t i = 0; i < inner; ++i) sum += plane[i];
      }
      m.out()[c] = static_cast<float>(sum);
    }
  });
}

}  // namespace lockstep::backend::cpu
