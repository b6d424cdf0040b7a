// Plain loops for affine grids and bilinear sampling, by the definitions of graph::Sampling.
#include "backend/cpu/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "backend/cpu/kernel_list.h"

namespace lockstep::backend::cpu {
namespace {

/// The two pixels on either side of a point along one axis, their weights, and the weights' slopes.
struct Pair {
  std::array<int64_t, 2> index;
  std::array<double, 2> weight;
  std::array<double, 2> slope;
};

Pair pair_at(graph::Sampling sampling, float x, int64_t size) {
  const PixelScale scale = pixel_scale(sampling, size);
  const double p = scale.at(x);
  const double reachable = std::clamp(std::floor(p), -2.0, static_cast<double>(size) + 1.0);
  const auto low = std::isnan(p) ? int64_t{0} : static_cast<int64_t>(reachable);  // NaN stays NaN, in the weights
  Pair pair{{low, low + 1}, {}, {-scale.scale, scale.scale}};
  if (sampling == graph::Sampling::study) {
    for (int64_t& i : pair.index) i = std::clamp<int64_t>(i, 0, size - 1);
    pair.weight = {static_cast<double>(pair.index[1]) - p, p - static_cast<double>(pair.index[0])};
    return pair;
  }
  pair.weight = {static_cast<double>(low + 1) - p, p - static_cast<double>(low)};
  for (size_t k = 0; k < 2; ++k) {
    if (pair.index[k] >= 0 && pair.index[k] < size) continue;
    pair.index[k] = 0;
    pair.weight[k] = pair.slope[k] = 0;
  }
  return pair;
}

/// A node's sizes, and the pixels of its points.
struct Sampler {
  graph::Sampling sampling;
  Shape image;
  int64_t points;

  Sampler(const KernelRequest& request, const Shape& of_image, const Shape& grid)
      : sampling(request.node.as<graph::SampleAttrs>().sampling), image(of_image), points(grid[1] * grid[2]) {}

  /// Calls body(n, point, across, down) for every point of every image.
  template <class Body>
  void for_points(const float* grid, Body body) const {
    for (int64_t n = 0; n < image[0]; ++n) {
      for (int64_t i = 0; i < points; ++i) {
        const float* xy = grid + (n * points + i) * 2;
        body(n, i, pair_at(sampling, xy[0], image[3]), pair_at(sampling, xy[1], image[2]));
      }
    }
  }
  [[nodiscard]] int64_t pixel(int64_t n, int64_t c, int64_t y, int64_t x) const {
    return ((n * image[1] + c) * image[2] + y) * image[3] + x;
  }
  [[nodiscard]] int64_t result(int64_t n, int64_t c, int64_t i) const { return (n * image[1] + c) * points + i; }
};

/// Calls body(row, column) for the four corners: 0 or 1 each.
template <class Body>
void for_corners(Body body) {
  for (const size_t row : {0U, 1U}) {
    for (const size_t column : {0U, 1U}) body(row, column);
  }
}

}  // namespace

std::unique_ptr<Kernel> reference_affine_grid(const KernelRequest& request, const CpuOptions&) {
  const auto [height, width, sampling] = request.node.as<graph::AffineGridAttrs>();
  return make_kernel(
      [=, h = height, w = width, s = sampling, images = request.out_shape()[0]](const Binding& m, const StepContext&) {
        for (int64_t i = 0; i < images * h * w; ++i) {
          const float* theta = m.in(0) + i / (h * w) * 6;
          const double x = grid_coordinate(s, i % w, w);
          const double y = grid_coordinate(s, i / w % h, h);
          m.out()[2 * i] = static_cast<float>(theta[0] * x + theta[1] * y + theta[2]);
          m.out()[2 * i + 1] = static_cast<float>(theta[3] * x + theta[4] * y + theta[5]);
        }
      });
}

std::unique_ptr<Kernel> reference_affine_grid_grad(const KernelRequest& request, const CpuOptions&) {
  const auto [height, width, sampling] = request.node.as<graph::AffineGridAttrs>();
  return make_kernel(
      [=, h = height, w = width, s = sampling, images = request.out_shape()[0]](const Binding& m, const StepContext&) {
        for (int64_t n = 0; n < images; ++n) {
          std::array<double, 6> sums{};
          for (int64_t i = 0; i < h * w; ++i) {
            const float* d = m.in(0) + (n * h * w + i) * 2;
            const double at[3] = {grid_coordinate(s, i % w, w), grid_coordinate(s, i / w, h), 1.0};
            for (size_t k = 0; k < 6; ++k) sums[k] += d[k / 3] * at[k % 3];
          }
          std::copy(sums.begin(), sums.end(), m.out() + n * 6);
        }
      });
}

std::unique_ptr<Kernel> reference_bilinear_sample(const KernelRequest& request, const CpuOptions&) {
  const Sampler s(request, request.in_shape(0), request.in_shape(1));
  return make_kernel([s](const Binding& m, const StepContext&) {
    s.for_points(m.in(1), [&](int64_t n, int64_t i, const Pair& x, const Pair& y) {
      for (int64_t c = 0; c < s.image[1]; ++c) {
        double sum = 0;  // row by row: if clipped corners are one pixel, their weights cancel exactly
        for (const size_t row : {0U, 1U}) {
          const float* line = m.in(0) + s.pixel(n, c, y.index[row], 0);
          sum += y.weight[row] * (x.weight[0] * line[x.index[0]] + x.weight[1] * line[x.index[1]]);
        }
        m.out()[s.result(n, c, i)] = static_cast<float>(sum);
      }
    });
  });
}

std::unique_ptr<Kernel> reference_bilinear_sample_grad_image(const KernelRequest& request, const CpuOptions&) {
  const Sampler s(request, request.out_shape(), request.in_shape(0));
  const int64_t count = s.image.elements();
  return make_kernel(
      [s, count](const Binding& m, const StepContext&) {
        auto* sums = m.workspace<double>();
        std::fill_n(sums, count, 0.0);
        s.for_points(m.in(0), [&](int64_t n, int64_t i, const Pair& x, const Pair& y) {
          for (int64_t c = 0; c < s.image[1]; ++c) {
            const double d = m.in(1)[s.result(n, c, i)];
            for_corners([&](size_t row, size_t column) {
              sums[s.pixel(n, c, y.index[row], x.index[column])] += d * (y.weight[row] * x.weight[column]);
            });
          }
        });
        std::transform(sums, sums + count, m.out(), [](double sum) { return static_cast<float>(sum); });
      },
      static_cast<size_t>(count) * sizeof(double));
}

std::unique_ptr<Kernel> reference_bilinear_sample_grad_grid(const KernelRequest& request, const CpuOptions&) {
  const Sampler s(request, request.in_shape(0), request.in_shape(1));
  return make_kernel([s](const Binding& m, const StepContext&) {
    s.for_points(m.in(1), [&](int64_t n, int64_t i, const Pair& x, const Pair& y) {
      double to_x = 0;
      double to_y = 0;
      for (int64_t c = 0; c < s.image[1]; ++c) {
        const double d = m.in(2)[s.result(n, c, i)];
        for_corners([&](size_t row, size_t column) {
          const double value = d * m.in(0)[s.pixel(n, c, y.index[row], x.index[column])];
          to_x += value * y.weight[row] * x.slope[column];
          to_y += value * y.slope[row] * x.weight[column];
        });
      }
      m.out()[(n * s.points + i) * 2] = static_cast<float>(to_x);
      m.out()[(n * s.points + i) * 2 + 1] = static_cast<float>(to_y);
    });
  });
}

}  // namespace lockstep::backend::cpu
