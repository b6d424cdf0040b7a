// Sampling between pixels matches its models: half_pixel is compared with results of PyTorch 2, study with its
// definition written once more in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "backend/cpu/cpu_backend.h"
#include "base/random.h"
#include "lockstep/ops.h"
#include "program/program.h"

namespace lockstep {
namespace {

using graph::Graph;
using graph::Value;
using Values = std::vector<float>;

/// A sampled image with every gradient of sum(y * weights).
struct Results {
  Values grid, y, diff_image, diff_theta;
};

struct Setting {
  ops::Sampling sampling;
  Shape image;
  int64_t height, width;
};

Results run(const Setting& s, const Values& image, const Values& theta, const Values& weights, bool reference_only) {
  Graph graph;
  const int64_t batch = s.image[0];
  const Value x = graph.input("image", {DType::f32, s.image});
  const Value t = graph.input("theta", {DType::f32, {batch, 6}});
  const Value w = graph.input("weights", {DType::f32, {batch, s.image[1], s.height, s.width}});
  const Value grid = ops::affine_grid(t, s.height, s.width, s.sampling);
  const Value y = ops::bilinear_sample(x, grid, s.sampling);
  const Value loss = ops::reduce_sum(ops::mul(y, w));
  const std::vector<Value> diff = ops::gradients(loss, std::array{x, t});
  const auto backend = backend::make_cpu_backend({.threads = 2, .reference_only = reference_only});
  program::Program program(graph, {grid, y, diff[0], diff[1]}, {}, *backend);
  program.bind_input(0, image.data());
  program.bind_input(1, theta.data());
  program.bind_input(2, weights.data());
  program.run({1, 0, 0});
  const auto result = [&](size_t i) {
    const auto values = program.output(i).as<float>();
    return Values(values.begin(), values.end());
  };
  return {result(0), result(1), result(2), result(3)};
}

void expect_near(const Values& seen, const std::vector<double>& wanted, double tolerance, const char* what) {
  ASSERT_EQ(seen.size(), wanted.size()) << what;
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_NEAR(seen[i], wanted[i], tolerance) << what << " at " << i;
}

class Sampling : public testing::TestWithParam<bool> {};

TEST_P(Sampling, HalfPixelAgreesWithPyTorch) {
  // affine_grid and grid_sample with align_corners=False, padding_mode="zeros".
  const Values image{1, -2, 3, 0.5F, 4, 0, -1, 2, -3, 2.5F, 1.5F, -0.5F};
  const Values theta{0.8F, -0.3F, 0.1F, 0.2F, 1.1F, -0.25F};
  const Values weights{1, 2, -1, 0.5F, 3, -2};
  const Results got = run({ops::Sampling::half_pixel, {1, 1, 3, 4}, 3, 2}, image, theta, weights, GetParam());
  expect_near(got.grid,
              {-0.0999999866, -1.08333337, 0.700000048, -0.883333325, -0.300000012, -0.349999994, 0.5, -0.150000006,
               -0.5, 0.383333325, 0.299999982, 0.583333373},
              1e-6, "grid");
  expect_near(got.y, {-0.187499821, 0.506249845, -0.702499986, 0.78125, 0.706249893, 1.05000019}, 1e-5, "y");
  expect_near(got.diff_image,
              {-0.052500017, -0.210000098, 0.303749859, 1.27125013, 0.589999914, 0.209999979, -0.0312500149,
               0.168750033, 0.862500072, 0.862500072, -1.57500017, -0.174999833},
              1e-5, "gradient to the image");
  expect_near(got.diff_theta, {-9.48125076, 11.5166693, 19.9875031, 4.66874886, -11.750001, -18.7125015}, 1e-4,
              "gradient to theta");
}

/// The study's sampler for one channel of one image, by its definition: linspace(-1, 1), px = (x + 1) * W / 2, corners
/// clipped, weights from the clipped corners.
class Study {
 public:
  Study(const Values& image, const Shape& shape, int64_t height, int64_t width)
      : image_(image), rows_(shape[2]), columns_(shape[3]), height_(height), width_(width) {}

  /// sum(y * weights) for image n.
  double weighted(const std::array<double, 6>& theta, const Values& weights, int64_t n,
                  std::vector<double>* results = nullptr) const {
    double sum = 0;
    for (int64_t i = 0; i < height_; ++i) {
      for (int64_t j = 0; j < width_; ++j) {
        const double x = -1.0 + 2.0 * static_cast<double>(j) / static_cast<double>(width_ - 1);
        const double y = -1.0 + 2.0 * static_cast<double>(i) / static_cast<double>(height_ - 1);
        const double value = at(theta[0] * x + theta[1] * y + theta[2], theta[3] * x + theta[4] * y + theta[5], n);
        if (results != nullptr) results->push_back(value);
        sum += value * weights[static_cast<size_t>((n * height_ + i) * width_ + j)];
      }
    }
    return sum;
  }

 private:
  [[nodiscard]] double at(double x, double y, int64_t n) const {
    const double px = (x + 1.0) * static_cast<double>(columns_) / 2.0;
    const double py = (y + 1.0) * static_cast<double>(rows_) / 2.0;
    const auto clip = [](double v, int64_t size) { return std::clamp(v, 0.0, static_cast<double>(size - 1)); };
    const double x0 = clip(std::floor(px), columns_);
    const double x1 = clip(std::floor(px) + 1.0, columns_);
    const double y0 = clip(std::floor(py), rows_);
    const double y1 = clip(std::floor(py) + 1.0, rows_);
    return (x1 - px) * (y1 - py) * pixel(n, y0, x0) + (x1 - px) * (py - y0) * pixel(n, y1, x0) +
           (px - x0) * (y1 - py) * pixel(n, y0, x1) + (px - x0) * (py - y0) * pixel(n, y1, x1);
  }
  [[nodiscard]] double pixel(int64_t n, double y, double x) const {
    return image_[static_cast<size_t>((n * rows_ + static_cast<int64_t>(y)) * columns_ + static_cast<int64_t>(x))];
  }

  const Values& image_;
  int64_t rows_, columns_, height_, width_;
};

TEST_P(Sampling, StudyAgreesWithItsDefinition) {
  const Setting s{ops::Sampling::study, {3, 1, 9, 7}, 8, 11};
  base::Sequence random(4, 2);
  const auto draw = [&](int64_t count) {
    Values values(static_cast<size_t>(count));
    for (float& v : values) v = random.normal();
    return values;
  };
  const Values image = draw(3 * 9 * 7);
  const Values weights = draw(3 * 8 * 11);
  // A zoom that stays inside, a rotation, and a map that looks far beyond every edge.
  const Values theta{0.713F, 0.021F, 0.053F, -0.034F, 0.727F, -0.041F, 0.617F, -0.513F, 0.107F,
                     0.459F, 0.719F, 0.223F, 2.317F,  0.411F, -0.307F, 0.119F, 3.127F,  0.613F};
  const Results got = run(s, image, theta, weights, GetParam());
  const Study study(image, s.image, s.height, s.width);
  std::vector<double> y;
  std::vector<double> slopes;
  for (int64_t n = 0; n < 3; ++n) {
    std::array<double, 6> at{};
    std::copy_n(theta.begin() + n * 6, 6, at.begin());
    study.weighted(at, weights, n, &y);
    for (double& v : at) {
      constexpr double kStep = 1e-7;
      const double middle = v;
      v = middle + kStep;
      const double above = study.weighted(at, weights, n);
      v = middle - kStep;
      slopes.push_back((above - study.weighted(at, weights, n)) / (2.0 * kStep));
      v = middle;
    }
  }
  expect_near(got.y, y, 1e-5, "y");
  expect_near(got.diff_theta, slopes, 2e-3, "gradient to theta");
}

TEST_P(Sampling, StudyOfTheIdentityEndsBeyondTheImage) {
  // theta = identity reads pixel i * W / (W - 1): from 0 to W, the last of them beyond the image.
  const Values image{1, 2, 3, 4, 5, 6, 7, 8, 9};
  const Results got =
      run({ops::Sampling::study, {1, 1, 3, 3}, 3, 3}, image, {1, 0, 0, 0, 1, 0}, Values(9, 1.0F), GetParam());
  expect_near(got.y, {1, 2.5, 0, 5.5, 7, 0, 0, 0, 0}, 1e-6, "y");
}

TEST_P(Sampling, StudyGivesExactZerosBeyondTheImage) {
  // Rounding errors left there would pass a ReLU and reach the gradients behind it.
  Values image(9 * 7);
  base::Sequence random(5, 2);
  for (float& v : image) v = random.uniform();
  for (const Values& theta : {Values{0.3F, 0.1F, 2.1F, 0, 0.4F, 0.1F}, Values{0.3F, 0.1F, 0.1F, 0, 0.4F, -3.3F}}) {
    const Results got = run({ops::Sampling::study, {1, 1, 9, 7}, 5, 6}, image, theta, Values(30, 1.0F), GetParam());
    for (const float y : got.y) EXPECT_EQ(y, 0.0F);
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Sampling, testing::Bool(),
                         [](const auto& kind) { return kind.param ? "Reference" : "Fast"; });

}  // namespace
}  // namespace lockstep
