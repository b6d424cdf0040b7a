// Plain loops for reductions and for ops that move elements. The latter need no faster form.
#include <algorithm>
#include <cstring>
#include <limits>

#include "backend/cpu/kernel_list.h"
#include "backend/cpu/kernels/bf16.h"
#include "backend/cpu/strides.h"
#include "base/parallel.h"

namespace lockstep::backend::cpu {
namespace {

/// A tensor cut along one axis: `outer` runs of `length` elements, each element a block of `inner` values.
struct Cut {
  int64_t outer;
  int64_t length;
  int64_t inner;
};

Cut cut(const Shape& shape, int axis) {
  return {shape.elements(0, axis), shape.elements(axis, shape.rank()), shape.elements(axis + 1, shape.rank())};
}

constexpr int64_t kPayingCopies = 32'768;  // for one more thread

/// Calls body(run) for all `outer` runs of `length` elements.
template <class Body>
void for_runs(int64_t outer, int64_t length, int threads, Body body) {
  base::parallel(base::split_for(outer * length, kPayingCopies, threads), [&](int part, int parts) {
    const base::Range mine = base::share(outer, part, parts);
    for (int64_t o = mine.begin; o < mine.end; ++o) body(o);
  });
}

/// Returns the place of element (n, rest); rest counts in row-major order of the axes behind the first.
int64_t stored_at(const Shape& shape, const graph::Layout& layout, int64_t i) {
  const int64_t rest = shape.elements(1, shape.rank());
  const int64_t n = i / rest;
  const int64_t r = i % rest;
  if (layout.plain()) return i;
  const int64_t b = layout.block;
  if (layout.kind == graph::Layout::Kind::batch_blocked) return (n / b * rest + r) * b + n % b;
  const int64_t inner = shape.elements(2, shape.rank());
  const int64_t c = r / inner;
  const int64_t blocks = (shape[1] + b - 1) / b;
  return ((n * blocks + c / b) * inner + r % inner) * b + c % b;
}

}  // namespace

std::unique_ptr<Kernel> reference_reduce(const KernelRequest& request, const CpuOptions&) {
  const graph::Op op = request.node.op;
  const Shape src = request.in_shape(0);
  const uint32_t axes = request.node.as<graph::ReduceAttrs>().axes;
  Shape kept = src;
  for (int axis = 0; axis < src.rank(); ++axis) kept = (axes >> axis & 1U) != 0 ? kept.with(axis, 1) : kept;
  const Strides strides = broadcast_strides(kept, src);
  const int64_t results = kept.elements();
  const double divisor = op == graph::Op::reduce_mean ? static_cast<double>(src.elements() / results) : 1.0;
  const bool largest = op == graph::Op::reduce_max;
  return make_kernel(
      [=](const Binding& m, const StepContext&) {
        auto* sums = m.workspace<double>();
        std::fill_n(sums, results, largest ? -std::numeric_limits<double>::infinity() : 0.0);
        for_each(src, strides, [&](int64_t i, int64_t to) {
          sums[to] = largest ? std::max<double>(sums[to], m.in(0)[i]) : sums[to] + m.in(0)[i];
        });
        for (int64_t i = 0; i < results; ++i) m.out()[i] = static_cast<float>(sums[i] / divisor);
      },
      static_cast<size_t>(results) * sizeof(double));
}

std::unique_ptr<Kernel> reference_broadcast_to(const KernelRequest& request, const CpuOptions&) {
  const Shape shape = request.out_shape();
  const Strides strides = broadcast_strides(request.in_shape(0), shape);
  return make_kernel([=](const Binding& m, const StepContext&) {
    for_each(shape, strides, [&](int64_t i, int64_t from) { m.out()[i] = m.in(0)[from]; });
  });
}

std::unique_ptr<Kernel> reference_copy(const KernelRequest& request, const CpuOptions&) {
  const size_t bytes = request.output().type.bytes();
  return make_kernel([=](const Binding& m, const StepContext&) {
    if (bytes > 0) std::memcpy(m.out<std::byte>(), m.in<std::byte>(0), bytes);
  });
}

std::unique_ptr<Kernel> reference_transpose(const KernelRequest& request, const CpuOptions&) {
  const Shape dst = request.out_shape();
  const Shape order = request.node.as<graph::TransposeAttrs>().permutation;
  const Strides plain = broadcast_strides(request.in_shape(0), request.in_shape(0));
  Strides strides{};
  for (int axis = 0; axis < dst.rank(); ++axis) {
    strides[static_cast<size_t>(axis)] = plain[static_cast<size_t>(order[axis])];
  }
  return make_kernel([=](const Binding& m, const StepContext&) {
    for_each(dst, strides, [&](int64_t i, int64_t from) { m.out()[i] = m.in(0)[from]; });
  });
}

std::unique_ptr<Kernel> reference_concat(const KernelRequest& request, const CpuOptions& options) {
  const int axis = request.node.as<graph::AxisAttrs>().axis;
  const Cut whole = cut(request.out_shape(), axis);
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < request.node.inputs.size(); ++i) lengths.push_back(cut(request.in_shape(i), axis).length);
  return make_kernel([=, threads = options.threads](const Binding& m, const StepContext&) {
    for_runs(whole.outer, whole.length, threads, [&](int64_t o) {
      float* to = m.out() + o * whole.length;
      for (size_t part = 0; part < lengths.size(); ++part) {
        to = std::copy_n(m.in(part) + o * lengths[part], lengths[part], to);
      }
    });
  });
}

std::unique_ptr<Kernel> reference_slice(const KernelRequest& request, const CpuOptions& options) {
  const auto [axis, begin] = request.node.as<graph::AxisAttrs>();
  const Cut whole = cut(request.in_shape(0), axis);
  const Cut part = cut(request.out_shape(), axis);
  const int64_t from = begin * whole.inner;
  return make_kernel([=, threads = options.threads](const Binding& m, const StepContext&) {
    for_runs(part.outer, part.length, threads, [&](int64_t o) {
      std::copy_n(m.in(0) + o * whole.length + from, part.length, m.out() + o * part.length);
    });
  });
}

std::unique_ptr<Kernel> reference_pad_slice(const KernelRequest& request, const CpuOptions& options) {
  const auto [axis, begin] = request.node.as<graph::AxisAttrs>();
  const Cut whole = cut(request.out_shape(), axis);
  const Cut part = cut(request.in_shape(0), axis);
  const int64_t to = begin * whole.inner;
  return make_kernel([=, threads = options.threads](const Binding& m, const StepContext&) {
    for_runs(whole.outer, whole.length, threads, [&](int64_t o) {
      float* run = m.out() + o * whole.length;
      std::fill_n(run, to, 0.0F);
      float* behind = std::copy_n(m.in(0) + o * part.length, part.length, run + to);
      std::fill(behind, run + whole.length, 0.0F);
    });
  });
}

std::unique_ptr<Kernel> reference_reorder(const KernelRequest& request, const CpuOptions&) {
  const Shape shape = request.out_shape();
  const graph::Layout from = request.input(0).layout;
  const graph::Layout to = request.output().layout;
  const size_t stored = static_cast<size_t>(graph::stored_elements(shape, to)) * size_of(request.output().type.dtype);
  const bool narrow_from = request.input(0).type.dtype == DType::bf16;
  const bool narrow_to = request.output().type.dtype == DType::bf16;
  return make_kernel([=](const Binding& m, const StepContext&) {
    if (!to.plain()) std::memset(m.out(), 0, stored);
    for (int64_t i = 0; i < shape.elements(); ++i) {
      const int64_t at = stored_at(shape, from, i);
      const float value = narrow_from ? widen(m.in<Bf16>(0)[at]) : m.in(0)[at];
      if (narrow_to) {
        m.out<Bf16>()[stored_at(shape, to, i)] = narrow(value);
      } else {
        m.out()[stored_at(shape, to, i)] = value;
      }
    }
  });
}

}  // namespace lockstep::backend::cpu
