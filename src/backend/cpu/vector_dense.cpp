// Matrix products, biases, reductions and softmax by our own vector kernels.
#include <numeric>

#include "backend/cpu/convert.h"
#include "backend/cpu/kernel_list.h"
#include "backend/cpu/kernels/elementwise.h"
#include "backend/cpu/kernels/gemm.h"
#include "backend/cpu/kernels/reduce.h"
#include "backend/cpu/kernels/softmax.h"

namespace lockstep::backend::cpu {
namespace {

/// Largest product for our own kernels; oneDNN's packing pays above it.
constexpr int64_t kLargestOwnProduct = 400'000'000;
/// Fewest elements per sum for which a vector kernel pays off.
constexpr int64_t kFewElements = 32;

/// Returns the product of a node, if our own kernels compute it.
std::optional<Gemm> own_product(const KernelRequest& request) {
  if (!all_plain(request)) return std::nullopt;
  const auto& attrs = request.node.as<graph::MatMulAttrs>();
  Gemm shape;
  shape.m = request.out_shape()[0];
  shape.n = request.out_shape()[1];
  shape.k = request.in_shape(0)[attrs.trans_a ? 0 : 1];
  shape.transpose_a = attrs.trans_a;
  shape.transpose_b = attrs.trans_b;
  shape.activation = convert(attrs.activation);
  if (2 * shape.m * shape.n * shape.k > kLargestOwnProduct) return std::nullopt;
  return shape;
}

}  // namespace

std::unique_ptr<Kernel> vector_gemm(const KernelRequest& request, const CpuOptions& options) {
  const std::optional<Gemm> product = own_product(request);
  if (!product) return nullptr;
  const int threads = options.threads;
  const auto scratch = static_cast<size_t>(gemm_scratch(*product, threads)) * sizeof(float);
  return make_kernel(
      [shape = *product, threads, bias = request.node.as<graph::MatMulAttrs>().bias](const Binding& m,
                                                                                     const StepContext&) {
        gemm(shape, m.in(0), m.in(1), bias ? m.in(2) : nullptr, m.out(), m.workspace(), threads);
      },
      scratch, gemm_shares(*product, threads));
}

std::unique_ptr<Kernel> vector_bias_add(const KernelRequest& request, const CpuOptions& options) {
  if (!all_plain(request) || request.out_shape().rank() != 2) return nullptr;
  const int64_t rows = request.out_shape()[0];
  const int64_t width = request.out_shape()[1];
  return make_kernel([=, threads = options.threads](const Binding& m, const StepContext&) {
    binary_row_right(BinaryFn::add, m.in(0), m.in(1), m.out(), rows, width, threads);
  });
}

std::unique_ptr<Kernel> vector_bias_grad(const KernelRequest& request, const CpuOptions& options) {
  if (!all_plain(request) || request.in_shape(0).rank() != 2) return nullptr;
  const int64_t rows = request.in_shape(0)[0];
  const int64_t width = request.in_shape(0)[1];
  return make_kernel([=, threads = options.threads](const Binding& m, const StepContext&) {
    column_sums(m.in(0), m.out(), rows, width, threads);
  });
}

namespace {

/// Reductions over the leading or the trailing axes: sums of columns or rows of a matrix, divided for a mean.
std::unique_ptr<Kernel> reduce_matrix(const Shape& src, int leading, bool columns, bool mean, int threads) {
  const int64_t rows = src.elements(0, leading);
  const int64_t width = src.elements(leading, src.rank());
  const int64_t results = columns ? width : rows;
  const auto summed = static_cast<float>(columns ? rows : width);
  return make_kernel([=](const Binding& m, const StepContext&) {
    (columns ? column_sums : row_sums)(m.in(0), m.out(), rows, width, threads);
    if (mean) unary(UnaryFn::scale, m.out(), m.out(), results, 1.0F / summed, threads);
  });
}

}  // namespace

std::unique_ptr<Kernel> vector_reduce(const KernelRequest& request, const CpuOptions& options) {
  const Shape& src = request.in_shape(0);
  const uint32_t axes = request.node.as<graph::ReduceAttrs>().axes;
  const uint32_t all = (1U << src.rank()) - 1U;
  const bool mean = request.node.op == graph::Op::reduce_mean;
  if (request.node.op == graph::Op::reduce_max || !all_plain(request) || src.elements() == 0) return nullptr;
  for (int leading = 1; leading < src.rank(); ++leading) {
    const uint32_t front = (1U << leading) - 1U;
    if (axes == front) return reduce_matrix(src, leading, true, mean, options.threads);
    if (axes == (all & ~front)) return reduce_matrix(src, leading, false, mean, options.threads);
  }
  if (axes != all) return nullptr;
  const int64_t count = src.elements();
  const double factor = mean ? 1.0 / static_cast<double>(count) : 1.0;
  if (count <= kFewElements) {
    return make_kernel([=](const Binding& m, const StepContext&) {
      *m.out() = static_cast<float>(std::accumulate(m.in(0), m.in(0) + count, 0.0) * factor);
    });
  }
  return make_kernel([=, threads = options.threads](const Binding& m, const StepContext&) {
    *m.out() = static_cast<float>(sum(m.in(0), count, threads) * factor);
  });
}

std::unique_ptr<Kernel> vector_softmax(const KernelRequest& request, const CpuOptions& options) {
  const int64_t rows = request.in_shape(0)[0];
  const int64_t classes = request.in_shape(0)[1];
  return make_kernel([=, threads = options.threads](const Binding& m, const StepContext&) {
    softmax(rows, classes, m.in(0), m.out(), threads);
  });
}

std::unique_ptr<Kernel> vector_softmax_grad(const KernelRequest& request, const CpuOptions& options) {
  const int64_t rows = request.in_shape(0)[0];
  const int64_t classes = request.in_shape(0)[1];
  return make_kernel([=, threads = options.threads](const Binding& m, const StepContext&) {
    softmax_backward(rows, classes, m.in(0), m.in(1), m.out(), threads);
  });
}

std::unique_ptr<Kernel> vector_softmax_cross_entropy(const KernelRequest& request, const CpuOptions& options) {
  const int64_t rows = request.in_shape(0)[0];
  const int64_t classes = request.in_shape(0)[1];
  return make_kernel([=, threads = options.threads](const Binding& m, const StepContext&) {
    softmax_cross_entropy(rows, classes, m.in(0), m.in<int32_t>(1), m.out(0), m.out(1), threads);
  });
}

std::unique_ptr<Kernel> vector_softmax_cross_entropy_grad(const KernelRequest& request, const CpuOptions& options) {
  const int64_t rows = request.in_shape(0)[0];
  const int64_t classes = request.in_shape(0)[1];
  return make_kernel([=, threads = options.threads](const Binding& m, const StepContext&) {
    softmax_cross_entropy_backward(rows, classes, m.in(0), m.in<int32_t>(1), m.in(2), m.out(), threads);
  });
}

}  // namespace lockstep::backend::cpu
