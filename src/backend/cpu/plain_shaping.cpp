// Ops that read their input with other strides: broadcasting and transposing, one run at a time.
#include <algorithm>

#include "backend/cpu/kernel_list.h"
#include "backend/cpu/strides.h"
#include "base/parallel.h"

namespace lockstep::backend::cpu {
namespace {

constexpr int64_t kPayingElements = 16'384;  // for one more thread

/// The loops over the result in order; adjacent axes that read the input evenly are merged.
struct Walk {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;

  Walk(const Shape& shape, const Strides& of_axes) {
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const int64_t size = shape[axis];
      const int64_t stride = of_axes[static_cast<size_t>(axis)];
      if (size == 1) continue;
      if (!sizes.empty() && strides.back() == stride * size) {
        sizes.back() *= size;
        strides.back() = stride;
      } else {
        sizes.push_back(size);
        strides.push_back(stride);
      }
    }
    if (sizes.empty()) sizes = strides = {1};
  }

  /// Returns the offset of run `index` in the input.
  [[nodiscard]] int64_t begin(int64_t index) const {
    int64_t offset = 0;
    for (size_t axis = sizes.size() - 1; axis-- > 0;) {
      offset += index % sizes[axis] * strides[axis];
      index /= sizes[axis];
    }
    return offset;
  }
};

void read_run(const float* src, int64_t stride, int64_t count, float* dst) {
  if (stride == 0) {
    std::fill_n(dst, count, *src);
  } else if (stride == 1) {
    std::copy_n(src, count, dst);
  } else {
    for (int64_t i = 0; i < count; ++i) dst[i] = src[i * stride];
  }
}

std::unique_ptr<Kernel> make_walk(const Shape& shape, const Strides& strides, int threads) {
  if (shape.elements() == 0) return make_kernel([](const Binding&, const StepContext&) {});
  const Walk walk(shape, strides);
  const int64_t length = walk.sizes.back();
  const int64_t stride = walk.strides.back();
  const int64_t runs = shape.elements() / length;
  return make_kernel([=](const Binding& m, const StepContext&) {
    const base::Split used = base::split_for(runs * length, kPayingElements, threads);
    base::parallel(used, [&](int part, int parts) {
      if (runs == 1) {  // splits the one run itself
        const base::Range mine = base::share(length, part, parts);
        return read_run(m.in(0) + mine.begin * stride, stride, mine.size(), m.out() + mine.begin);
      }
      const base::Range mine = base::share(runs, part, parts);
      for (int64_t r = mine.begin; r < mine.end; ++r) {
        read_run(m.in(0) + walk.begin(r), stride, length, m.out() + r * length);
      }
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> plain_broadcast_to(const KernelRequest& request, const CpuOptions& options) {
  const Shape& shape = request.out_shape();
  return make_walk(shape, broadcast_strides(request.in_shape(0), shape), options.threads);
}

std::unique_ptr<Kernel> plain_transpose(const KernelRequest& request, const CpuOptions& options) {
  const Shape& dst = request.out_shape();
  const Shape& order = request.node.as<graph::TransposeAttrs>().permutation;
  const Strides plain = broadcast_strides(request.in_shape(0), request.in_shape(0));
  Strides strides{};
  for (int axis = 0; axis < dst.rank(); ++axis) {
    strides[static_cast<size_t>(axis)] = plain[static_cast<size_t>(order[axis])];
  }
  return make_walk(dst, strides, options.threads);
}

}  // namespace lockstep::backend::cpu
