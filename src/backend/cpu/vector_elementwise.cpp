// Elementwise ops by the vector loops of kernels/elementwise.h. They work in any layout if all operands have
// the same one; padding is computed too.
#include "backend/cpu/kernel_list.h"
#include "backend/cpu/kernels/elementwise.h"

namespace lockstep::backend::cpu {
namespace {

using graph::Op;

std::optional<UnaryFn> unary_fn(Op op) {
  switch (op) {
    case Op::relu:
      return UnaryFn::relu;
    case Op::tanh:
      return UnaryFn::tanh;
    case Op::sigmoid:
      return UnaryFn::sigmoid;
    case Op::softplus:
      return UnaryFn::softplus;
    case Op::exp:
      return UnaryFn::exp;
    case Op::log:
      return UnaryFn::log;
    case Op::sqrt:
      return UnaryFn::sqrt;
    case Op::square:
      return UnaryFn::square;
    case Op::neg:
      return UnaryFn::neg;
    case Op::abs:
      return UnaryFn::abs;
    case Op::scale:
      return UnaryFn::scale;
    case Op::add_scalar:
      return UnaryFn::add_scalar;
    default:
      return std::nullopt;
  }
}

std::optional<BinaryFn> binary_fn(Op op) {
  switch (op) {
    case Op::add:
      return BinaryFn::add;
    case Op::sub:
      return BinaryFn::sub;
    case Op::mul:
      return BinaryFn::mul;
    case Op::div:
      return BinaryFn::div;
    case Op::maximum:
      return BinaryFn::max;
    case Op::minimum:
      return BinaryFn::min;
    case Op::relu_grad:
      return BinaryFn::relu_grad;
    case Op::tanh_grad:
      return BinaryFn::tanh_grad;
    case Op::sigmoid_grad:
      return BinaryFn::sigmoid_grad;
    case Op::softplus_grad:
      return BinaryFn::softplus_grad;
    case Op::abs_grad:
      return BinaryFn::abs_grad;
    default:
      return std::nullopt;
  }
}

/// Returns true if `row` repeats along the leading axes of `whole`: [.., n] against [.., 1, n].
bool is_row_of(const Shape& row, const Shape& whole) {
  int axis = whole.rank() - 1;
  int in_row = row.rank() - 1;
  while (in_row >= 0 && row[in_row] == whole[axis]) --in_row, --axis;
  for (; in_row >= 0; --in_row) {
    if (row[in_row] != 1) return false;
  }
  return true;
}

}  // namespace

std::unique_ptr<Kernel> vector_fill(const KernelRequest& request, const CpuOptions& options) {
  const float value = request.node.as<graph::ScalarAttrs>().value;
  const int64_t count = request.out_shape().elements();
  return make_kernel(
      [=, threads = options.threads](const Binding& m, const StepContext&) { fill(value, m.out(), count, threads); });
}

std::unique_ptr<Kernel> vector_unary(const KernelRequest& request, const CpuOptions& options) {
  const auto fn = unary_fn(request.node.op);
  if (!fn || !all_alike(request)) return nullptr;
  const auto* scalar = std::get_if<graph::ScalarAttrs>(&request.node.attrs);
  const float alpha = scalar == nullptr ? 0.0F : scalar->value;
  const int64_t count = graph::stored_elements(request.out_shape(), request.output().layout);
  return make_kernel([=, f = *fn, threads = options.threads](const Binding& m, const StepContext&) {
    unary(f, m.in(0), m.out(), count, alpha, threads);
  });
}

std::unique_ptr<Kernel> vector_binary(const KernelRequest& request, const CpuOptions& options) {
  const auto fn = binary_fn(request.node.op);
  if (!fn) return nullptr;
  const int threads = options.threads;
  const Shape& shape = request.out_shape();
  const int64_t count = graph::stored_elements(shape, request.output().layout);
  if (all_alike(request)) {
    return make_kernel(
        [=, f = *fn](const Binding& m, const StepContext&) { binary(f, m.in(0), m.in(1), m.out(), count, threads); });
  }
  if (!all_plain(request) || count == 0) return nullptr;
  const Shape& a = request.in_shape(0);
  const Shape& b = request.in_shape(1);
  if (a == shape && b.elements() == 1) {
    return make_kernel([=, f = *fn](const Binding& m, const StepContext&) {
      binary_scalar_right(f, m.in(0), *m.in(1), m.out(), count, threads);
    });
  }
  if (b == shape && a.elements() == 1) {
    return make_kernel([=, f = *fn](const Binding& m, const StepContext&) {
      binary_scalar_left(f, *m.in(0), m.in(1), m.out(), count, threads);
    });
  }
  if (a == shape && is_row_of(b, shape)) {
    return make_kernel([=, f = *fn, width = b.elements()](const Binding& m, const StepContext&) {
      binary_row_right(f, m.in(0), m.in(1), m.out(), count / width, width, threads);
    });
  }
  if (b == shape && is_row_of(a, shape)) {
    return make_kernel([=, f = *fn, width = a.elements()](const Binding& m, const StepContext&) {
      binary_row_left(f, m.in(0), m.in(1), m.out(), count / width, width, threads);
    });
  }
  return nullptr;
}

std::unique_ptr<Kernel> vector_max_grad(const KernelRequest& request, const CpuOptions& options) {
  if (!all_alike(request)) return nullptr;
  const int64_t count = graph::stored_elements(request.out_shape(), request.output().layout);
  return make_kernel([=, threads = options.threads](const Binding& m, const StepContext&) {
    max_backward(m.in(0), m.in(1), m.in(2), m.out(), count, threads);
  });
}

}  // namespace lockstep::backend::cpu
