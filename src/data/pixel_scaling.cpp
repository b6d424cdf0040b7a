#include "data/pixel_scaling.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include "lockstep/error.h"

namespace lockstep::data {
namespace {

/// Weighted sums per pixel, around the first example's values: a pixel that never changes then sums to exactly 0.
struct Sums {
  std::vector<double> origin;
  std::vector<double> first;
  std::vector<double> second;

  void add(const float* image, double weight) {
    for (size_t i = 0; i < first.size(); ++i) {
      const double value = double{image[i]} - origin[i];
      first[i] += weight * value;
      second[i] += weight * value * value;
    }
  }
};

}  // namespace

void PixelScaling::apply(std::span<float> pixels) const {
  for (size_t begin = 0; begin < pixels.size(); begin += mean.size()) {
    for (size_t i = 0; i < mean.size(); ++i) {
      pixels[begin + i] = (pixels[begin + i] - mean[i]) * inverse_deviation[i];
    }
  }
}

void PixelScaling::undo(std::span<float> pixels) const {
  for (size_t begin = 0; begin < pixels.size(); begin += mean.size()) {
    for (size_t i = 0; i < mean.size(); ++i) {
      const float inverse = inverse_deviation[i];
      pixels[begin + i] = inverse == 0 ? mean[i] : pixels[begin + i] / inverse + mean[i];
    }
  }
}

PixelScaling standardise(const Examples& examples) {
  if (examples.empty()) throw UsageError("cannot standardise pixels: there are no training examples");
  const size_t pixels = examples.shape.size();
  Sums sums{std::vector<double>(pixels), std::vector<double>(pixels), std::vector<double>(pixels)};
  std::vector<float> image(pixels);
  copy_image(examples, 0, image);
  sums.origin.assign(image.begin(), image.end());
  const int64_t stored = examples.stored();
  const int64_t count = examples.count();
  for (int64_t i = 0; i < stored; ++i) {
    copy_image(examples, i, image);
    sums.add(image.data(), static_cast<double>(count / stored + (i < count % stored ? 1 : 0)));
  }
  PixelScaling scaling{std::vector<float>(pixels), std::vector<float>(pixels)};
  for (size_t i = 0; i < pixels; ++i) {
    const double mean = sums.first[i] / static_cast<double>(count);
    const double variance = sums.second[i] / static_cast<double>(count) - mean * mean;
    scaling.mean[i] = static_cast<float>(sums.origin[i] + mean);
    const bool changes = variance > double{std::numeric_limits<float>::min()};
    scaling.inverse_deviation[i] = changes ? static_cast<float>(1.0 / std::sqrt(variance)) : 0.0F;
  }
  return scaling;
}

}  // namespace lockstep::data
