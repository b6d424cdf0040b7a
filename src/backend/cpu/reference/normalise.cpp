// Plain loops for local response normalisation; sums in double.
#include <algorithm>
#include <cmath>

#include "backend/cpu/kernel_list.h"

namespace lockstep::backend::cpu {
namespace {

struct Planes {
  int64_t images;
  int64_t channels;
  int64_t size;
};

Planes planes_of(const Shape& x) { return {x[0], x[1], x[2] * x[3]}; }

/// Calls body(j) for the channels near c.
template <class Body>
void for_near(const graph::LrnAttrs& attrs, int64_t channels, int64_t c, Body body) {
  const int64_t last = std::min(channels - 1, c + attrs.radius);
  for (int64_t j = std::max<int64_t>(0, c - attrs.radius); j <= last; ++j) body(j);
}

/// Returns bias + alpha * sum of squares at channel c of one pixel; the pixel's channels are `stride` apart.
double norm(const graph::LrnAttrs& attrs, const float* pixel, int64_t channels, int64_t stride, int64_t c) {
  double sum = 0;
  for_near(attrs, channels, c, [&](int64_t j) { sum += std::pow(static_cast<double>(pixel[j * stride]), 2); });
  return attrs.bias + attrs.alpha * sum;
}

/// Calls body(offset of channel 0) for every pixel.
template <class Body>
void for_pixels(const Planes& s, Body body) {
  for (int64_t n = 0; n < s.images; ++n) {
    for (int64_t i = 0; i < s.size; ++i) body(n * s.channels * s.size + i);
  }
}

}  // namespace

std::unique_ptr<Kernel> reference_lrn(const KernelRequest& request, const CpuOptions&) {
  if (!all_plain(request)) return nullptr;
  const graph::LrnAttrs attrs = request.node.as<graph::LrnAttrs>();
  const Planes s = planes_of(request.out_shape());
  return make_kernel([=](const Binding& m, const StepContext&) {
    for_pixels(s, [&](int64_t at) {
      for (int64_t c = 0; c < s.channels; ++c) {
        const double divisor = std::pow(norm(attrs, m.in(0) + at, s.channels, s.size, c), attrs.beta);
        m.out()[at + c * s.size] = static_cast<float>(m.in(0)[at + c * s.size] / divisor);
      }
    });
  });
}

std::unique_ptr<Kernel> reference_lrn_grad(const KernelRequest& request, const CpuOptions&) {
  if (!all_plain(request)) return nullptr;
  const graph::LrnAttrs attrs = request.node.as<graph::LrnAttrs>();
  const Planes s = planes_of(request.out_shape());
  return make_kernel([=](const Binding& m, const StepContext&) {
    for_pixels(s, [&](int64_t at) {
      const float* x = m.in(0) + at;
      const float* dy = m.in(1) + at;
      for (int64_t c = 0; c < s.channels; ++c) {
        double shared = 0;
        for_near(attrs, s.channels, c, [&](int64_t j) {
          const double n = norm(attrs, x, s.channels, s.size, j);
          shared += static_cast<double>(dy[j * s.size]) * x[j * s.size] * std::pow(n, -attrs.beta - 1.0);
        });
        const double own = dy[c * s.size] * std::pow(norm(attrs, x, s.channels, s.size, c), -attrs.beta);
        m.out()[at + c * s.size] = static_cast<float>(own - 2.0 * attrs.alpha * attrs.beta * x[c * s.size] * shared);
      }
    });
  });
}

}  // namespace lockstep::backend::cpu
