// Plain loops for convolution and pooling over [N, C, H, W]; sums in double.
#include <limits>

#include "backend/arithmetic.h"
#include "backend/cpu/kernel_list.h"

namespace lockstep::backend::cpu {
namespace {

/// Calls body(y, x, ky, kx) for the cells (y, x) of an image that lie under the window at output (oy, ox).
template <class Body>
void for_window(const graph::Window& w, int64_t height, int64_t width, int64_t oy, int64_t ox, Body body) {
  for (int64_t ky = 0; ky < w.kernel_h; ++ky) {
    const int64_t y = oy * w.stride_h - w.pad_top + ky;
    if (y < 0 || y >= height) continue;
    for (int64_t kx = 0; kx < w.kernel_w; ++kx) {
      const int64_t x = ox * w.stride_w - w.pad_left + kx;
      if (x >= 0 && x < width) body(y, x, ky, kx);
    }
  }
}

/// Calls body for every position of a 4-dimensional shape.
template <class Body>
void for_4d(const Shape& shape, Body body) {
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t c = 0; c < shape[1]; ++c) {
      for (int64_t y = 0; y < shape[2]; ++y) {
        for (int64_t x = 0; x < shape[3]; ++x) body(n, c, y, x);
      }
    }
  }
}

int64_t at(const Shape& s, int64_t n, int64_t c, int64_t y, int64_t x) {
  return ((n * s[1] + c) * s[2] + y) * s[3] + x;
}

/// Returns the cell of the window with the maximum: the first of equals.
int64_t winner(const graph::Window& w, const Shape& src_shape, const float* src, int64_t n, int64_t c, int64_t oy,
               int64_t ox) {
  float best = -std::numeric_limits<float>::infinity();
  int64_t where = -1;
  for_window(w, src_shape[2], src_shape[3], oy, ox, [&](int64_t y, int64_t x, int64_t, int64_t) {
    const int64_t cell = at(src_shape, n, c, y, x);
    if (where < 0 || src[cell] > best) {
      best = src[cell];
      where = cell;
    }
  });
  return where;
}

int64_t cells(const graph::Window& w, const Shape& src, int64_t oy, int64_t ox) {
  int64_t count = 0;
  for_window(w, src[2], src[3], oy, ox, [&](int64_t, int64_t, int64_t, int64_t) { ++count; });
  return count;
}

}  // namespace

std::unique_ptr<Kernel> reference_conv2d(const KernelRequest& request, const CpuOptions&) {
  if (!all_plain(request)) return nullptr;
  const graph::ConvAttrs attrs = request.node.as<graph::ConvAttrs>();
  const Shape src = request.in_shape(0);
  const Shape weights = request.in_shape(1);
  const Shape dst = request.out_shape();
  return make_kernel([=](const Binding& m, const StepContext&) {
    for_4d(dst, [&](int64_t n, int64_t o, int64_t oy, int64_t ox) {
      double sum = attrs.bias ? m.in(2)[o] : 0.0;
      for (int64_t c = 0; c < src[1]; ++c) {
        for_window(attrs.window, src[2], src[3], oy, ox, [&](int64_t y, int64_t x, int64_t ky, int64_t kx) {
          sum += static_cast<double>(m.in(0)[at(src, n, c, y, x)]) * m.in(1)[at(weights, o, c, ky, kx)];
        });
      }
      m.out()[at(dst, n, o, oy, ox)] = activate(attrs.activation, static_cast<float>(sum));
    });
  });
}

std::unique_ptr<Kernel> reference_conv2d_grad_input(const KernelRequest& request, const CpuOptions&) {
  if (!all_plain(request)) return nullptr;
  const graph::Window w = request.node.as<graph::ConvAttrs>().window;
  const Shape diff_dst = request.in_shape(0);
  const Shape weights = request.in_shape(1);
  const Shape diff_src = request.out_shape();
  return make_kernel([=](const Binding& m, const StepContext&) {
    std::fill_n(m.out(), diff_src.elements(), 0.0F);
    for_4d(diff_dst, [&](int64_t n, int64_t o, int64_t oy, int64_t ox) {
      const float d = m.in(0)[at(diff_dst, n, o, oy, ox)];
      for (int64_t c = 0; c < diff_src[1]; ++c) {
        for_window(w, diff_src[2], diff_src[3], oy, ox, [&](int64_t y, int64_t x, int64_t ky, int64_t kx) {
          m.out()[at(diff_src, n, c, y, x)] += d * m.in(1)[at(weights, o, c, ky, kx)];
        });
      }
    });
  });
}

std::unique_ptr<Kernel> reference_conv2d_grad_weights(const KernelRequest& request, const CpuOptions&) {
  if (!all_plain(request)) return nullptr;
  const graph::ConvAttrs attrs = request.node.as<graph::ConvAttrs>();
  const Shape src = request.in_shape(0);
  const Shape diff_dst = request.in_shape(1);
  const Shape weights = request.out_shape();
  return make_kernel([=](const Binding& m, const StepContext&) {
    std::fill_n(m.out(), weights.elements(), 0.0F);
    if (attrs.bias) std::fill_n(m.out(1), weights[0], 0.0F);
    for_4d(diff_dst, [&](int64_t n, int64_t o, int64_t oy, int64_t ox) {
      const float d = m.in(1)[at(diff_dst, n, o, oy, ox)];
      if (attrs.bias) m.out(1)[o] += d;
      for (int64_t c = 0; c < src[1]; ++c) {
        for_window(attrs.window, src[2], src[3], oy, ox, [&](int64_t y, int64_t x, int64_t ky, int64_t kx) {
          m.out()[at(weights, o, c, ky, kx)] += d * m.in(0)[at(src, n, c, y, x)];
        });
      }
    });
  });
}

std::unique_ptr<Kernel> reference_pool(const KernelRequest& request, const CpuOptions&) {
  if (!all_plain(request)) return nullptr;
  const bool largest = request.node.op == graph::Op::max_pool;
  const graph::Window w = request.node.as<graph::PoolAttrs>().window;
  const Shape src = request.in_shape(0);
  const Shape dst = request.out_shape();
  return make_kernel([=](const Binding& m, const StepContext&) {
    for_4d(dst, [&](int64_t n, int64_t c, int64_t oy, int64_t ox) {
      float& result = m.out()[at(dst, n, c, oy, ox)];
      if (largest) {
        result = m.in(0)[winner(w, src, m.in(0), n, c, oy, ox)];
        return;
      }
      double sum = 0;
      for_window(w, src[2], src[3], oy, ox,
                 [&](int64_t y, int64_t x, int64_t, int64_t) { sum += m.in(0)[at(src, n, c, y, x)]; });
      result = static_cast<float>(sum / static_cast<double>(cells(w, src, oy, ox)));
    });
  });
}

std::unique_ptr<Kernel> reference_pool_grad(const KernelRequest& request, const CpuOptions&) {
  if (!all_plain(request)) return nullptr;
  const bool largest = request.node.op == graph::Op::max_pool_grad;
  const graph::PoolAttrs attrs = request.node.as<graph::PoolAttrs>();
  const graph::Window w = attrs.window;
  const Shape src = request.out_shape();
  const Shape dst = request.in_shape(largest ? 1 : 0);
  return make_kernel([=](const Binding& m, const StepContext&) {
    std::fill_n(m.out(), src.elements(), 0.0F);
    for_4d(dst, [&](int64_t n, int64_t c, int64_t oy, int64_t ox) {
      const float d = m.in(largest ? 1 : 0)[at(dst, n, c, oy, ox)];
      if (largest) {
        const int64_t cell = winner(w, src, m.in(0), n, c, oy, ox);
        if (!attrs.through_relu || m.in(0)[cell] > 0.0F) m.out()[cell] += d;
        return;
      }
      const float part = d / static_cast<float>(cells(w, src, oy, ox));
      for_window(w, src[2], src[3], oy, ox,
                 [&](int64_t y, int64_t x, int64_t, int64_t) { m.out()[at(src, n, c, y, x)] += part; });
    });
  });
}

}  // namespace lockstep::backend::cpu
