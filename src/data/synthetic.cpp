#include "data/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kPrototypeStream = 0x70726f746f;  // "proto"
constexpr uint64_t kTrainStream = 0x747261696e;      // "train"
constexpr uint64_t kTestStream = 0x74657374;         // "test"
constexpr int kGrid = 7;
constexpr int kMaxShift = 2;

using Plane = std::vector<float>;

/// Makes random cells of a coarse grid, blurred by bilinear interpolation.
Plane make_prototype(const SyntheticOptions& options, base::Sequence& random) {
  std::vector<float> cells((kGrid + 1) * (kGrid + 1));
  for (float& cell : cells) cell = random.below(5) < 2 ? 1.0F : 0.0F;
  const int height = options.shape.height;
  const int width = options.shape.width;
  Plane plane;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const float gy = static_cast<float>(y * kGrid) / static_cast<float>(height);
      const float gx = static_cast<float>(x * kGrid) / static_cast<float>(width);
      const auto row = static_cast<size_t>(gy);
      const auto column = static_cast<size_t>(gx);
      const float* cell = cells.data() + row * (kGrid + 1) + column;
      const float fx = gx - static_cast<float>(column);
      const float above = cell[0] + (cell[1] - cell[0]) * fx;
      const float below = cell[kGrid + 1] + (cell[kGrid + 2] - cell[kGrid + 1]) * fx;
      plane.push_back(above + (below - above) * (gy - static_cast<float>(row)));
    }
  }
  return plane;
}

/// Returns a value close to N(0, 1): the sum of four random bytes, with the same bits under any mathematics library.
float rough_normal(base::Sequence& random) {
  const uint32_t word = random.next();
  const uint32_t sum = (word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24);
  return (static_cast<float>(sum) - 510.0F) * (1.0F / 147.8F);
}

void draw(const SyntheticOptions& options, const Plane& prototype, base::Sequence& random, uint8_t* out) {
  const int dy = static_cast<int>(random.below(2 * kMaxShift + 1)) - kMaxShift;
  const int dx = static_cast<int>(random.below(2 * kMaxShift + 1)) - kMaxShift;
  const int height = options.shape.height;
  const int width = options.shape.width;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int sy = y + dy;
      const int sx = x + dx;
      const bool inside = sy >= 0 && sy < height && sx >= 0 && sx < width;
      const float clean =
          inside ? prototype[static_cast<size_t>(sy) * static_cast<size_t>(width) + static_cast<size_t>(sx)] : 0.0F;
      const float value = std::clamp(clean + options.noise * rough_normal(random), 0.0F, 1.0F);
      *out++ = static_cast<uint8_t>(std::lround(value * 255.0F));
    }
  }
}

Examples make_split(const SyntheticOptions& options, const std::vector<Plane>& prototypes, int64_t count,
                    uint64_t stream) {
  Examples examples;
  examples.shape = options.shape;
  examples.classes = options.classes;
  examples.bytes.resize(static_cast<size_t>(count) * options.shape.size());
  const auto channels = static_cast<size_t>(options.shape.channels);
  const size_t plane = options.shape.size() / channels;
  for (int64_t i = 0; i < count; ++i) {
    base::Sequence random(options.seed, stream, static_cast<uint64_t>(i));
    const uint32_t label = random.below(static_cast<uint32_t>(options.classes));
    uint8_t* image = examples.bytes.data() + static_cast<size_t>(i) * options.shape.size();
    for (size_t c = 0; c < channels; ++c) draw(options, prototypes[label * channels + c], random, image + c * plane);
    examples.labels.push_back(static_cast<int32_t>(label));
  }
  return examples;
}

void check(const SyntheticOptions& options) {
  const ImageShape& shape = options.shape;
  const auto side_ok = [](int side) { return side >= 1 && side <= 4096; };
  if (shape.channels < 1 || shape.channels > 16 || !side_ok(shape.height) || !side_ok(shape.width)) {
    throw UsageError(fmt::format("synthetic images of {}; 1 to 16 channels and 1 to 4096 pixels a side are allowed",
                                 to_string(shape)));
  }
  if (options.classes < 2 || options.classes > 1000) {
    throw UsageError(fmt::format("synthetic data of {} classes; 2 to 1000 are allowed", options.classes));
  }
  const auto count_ok = [](int64_t count) { return count >= 1 && count <= std::numeric_limits<int32_t>::max(); };
  if (!count_ok(options.train) || !count_ok(options.test)) {
    throw UsageError(fmt::format("synthetic data of {} training and {} test examples; at least 1 of each is allowed",
                                 options.train, options.test));
  }
}

}  // namespace

Dataset synthetic(const SyntheticOptions& options) {
  check(options);
  std::vector<Plane> prototypes;
  prototypes.reserve(static_cast<size_t>(options.classes) * static_cast<size_t>(options.shape.channels));
  base::Sequence random(options.seed, kPrototypeStream);
  for (int i = 0; i < options.classes * options.shape.channels; ++i)
    prototypes.push_back(make_prototype(options, random));
  Dataset dataset;
  dataset.name = "synthetic";
  dataset.origin = fmt::format("generated from seed {}", options.seed);
  dataset.class_names.reserve(static_cast<size_t>(options.classes));
  for (int i = 0; i < options.classes; ++i) dataset.class_names.push_back(std::to_string(i));
  dataset.train = make_split(options, prototypes, options.train, kTrainStream);
  dataset.test = make_split(options, prototypes, options.test, kTestStream);
  dataset.validation.shape = options.shape;
  dataset.validation.classes = options.classes;
  return dataset;
}

}  // namespace lockstep::data
