// Plain loops for softmax and the losses over classes.
#include <algorithm>
#include <cmath>

#include "backend/cpu/kernel_list.h"

namespace lockstep::backend::cpu {
namespace {

struct Rows {
  int64_t rows;
  int64_t classes;
};

Rows rows_of(const Shape& scores) { return {scores[0], scores[1]}; }

/// Writes the softmax of one row and returns log(sum(exp(row))).
float softmax_row(const float* src, float* dst, int64_t classes) {
  const float largest = *std::max_element(src, src + classes);
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) sum += std::exp(static_cast<double>(src[c]) - largest);
  for (int64_t c = 0; c < classes; ++c) {
    dst[c] = static_cast<float>(std::exp(static_cast<double>(src[c]) - largest) / sum);
  }
  return static_cast<float>(largest + std::log(sum));
}

}  // namespace

std::unique_ptr<Kernel> reference_softmax(const KernelRequest& request, const CpuOptions&) {
  const Rows s = rows_of(request.in_shape(0));
  return make_kernel([=](const Binding& m, const StepContext&) {
    for (int64_t r = 0; r < s.rows; ++r) softmax_row(m.in(0) + r * s.classes, m.out() + r * s.classes, s.classes);
  });
}

std::unique_ptr<Kernel> reference_softmax_grad(const KernelRequest& request, const CpuOptions&) {
  const Rows s = rows_of(request.in_shape(0));
  return make_kernel([=](const Binding& m, const StepContext&) {
    for (int64_t r = 0; r < s.rows; ++r) {
      const float* y = m.in(0) + r * s.classes;
      const float* dy = m.in(1) + r * s.classes;
      double dot = 0;
      for (int64_t c = 0; c < s.classes; ++c) dot += static_cast<double>(y[c]) * dy[c];
      for (int64_t c = 0; c < s.classes; ++c) m.out()[r * s.classes + c] = y[c] * (dy[c] - static_cast<float>(dot));
    }
  });
}

std::unique_ptr<Kernel> reference_cross_entropy(const KernelRequest& request, const CpuOptions&) {
  const Rows s = rows_of(request.in_shape(0));
  return make_kernel([=](const Binding& m, const StepContext&) {
    for (int64_t r = 0; r < s.rows; ++r) m.out()[r] = -std::log(m.in(0)[r * s.classes + m.in<int32_t>(1)[r]]);
  });
}

std::unique_ptr<Kernel> reference_cross_entropy_grad(const KernelRequest& request, const CpuOptions&) {
  const Rows s = rows_of(request.in_shape(0));
  return make_kernel([=](const Binding& m, const StepContext&) {
    std::fill_n(m.out(), s.rows * s.classes, 0.0F);
    for (int64_t r = 0; r < s.rows; ++r) {
      const int64_t hit = r * s.classes + m.in<int32_t>(1)[r];
      m.out()[hit] = -m.in(2)[r] / m.in(0)[hit];
    }
  });
}

std::unique_ptr<Kernel> reference_softmax_cross_entropy(const KernelRequest& request, const CpuOptions&) {
  const Rows s = rows_of(request.in_shape(0));
  return make_kernel([=](const Binding& m, const StepContext&) {
    for (int64_t r = 0; r < s.rows; ++r) {
      const float* row = m.in(0) + r * s.classes;
      m.out(0)[r] = softmax_row(row, m.out(1) + r * s.classes, s.classes) - row[m.in<int32_t>(1)[r]];
    }
  });
}

std::unique_ptr<Kernel> reference_softmax_cross_entropy_grad(const KernelRequest& request, const CpuOptions&) {
  const Rows s = rows_of(request.in_shape(0));
  return make_kernel([=](const Binding& m, const StepContext&) {
    for (int64_t r = 0; r < s.rows; ++r) {
      for (int64_t c = 0; c < s.classes; ++c) {
        const float target = c == m.in<int32_t>(1)[r] ? 1.0F : 0.0F;
        m.out()[r * s.classes + c] = (m.in(0)[r * s.classes + c] - target) * m.in(2)[r];
      }
    }
  });
}

std::unique_ptr<Kernel> reference_correct(const KernelRequest& request, const CpuOptions&) {
  const Rows s = rows_of(request.in_shape(0));
  return make_kernel([=](const Binding& m, const StepContext&) {
    for (int64_t r = 0; r < s.rows; ++r) {
      const float* row = m.in(0) + r * s.classes;
      m.out()[r] = std::max_element(row, row + s.classes) - row == m.in<int32_t>(1)[r] ? 1.0F : 0.0F;
    }
  });
}

}  // namespace lockstep::backend::cpu
