#include "data/clutter.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/parallel.h"
#include "base/random.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kTrainClutter = 0x636c7574747261;      // "cluttra"
constexpr uint64_t kValidationStream = 0x636c757474766c;  // "cluttvl"
constexpr uint64_t kTestClutter = 0x636c7574747465;       // "cluttte"
constexpr int kPiece = 5;
constexpr uint32_t kLeastPieces = 5;
constexpr uint32_t kMostPieces = 8;
constexpr int64_t kValidationShare = 12;

/// Positions in two images.
struct Spot {
  int row = 0;
  int column = 0;
};

Spot anywhere(base::Sequence& random, int height, int width) {
  const auto row = static_cast<int>(random.below(static_cast<uint32_t>(height)));
  return {row, static_cast<int>(random.below(static_cast<uint32_t>(width)))};
}

/// Draws the samples of one split from a range of the digits.
class Drawer {
 public:
  Drawer(const Examples& digits, base::Range range, int side) : digits_(digits), range_(range), side_(side) {}

  void draw(base::Sequence& random, uint8_t* out, int32_t& label) const {
    const int64_t digit = any_digit(random);
    label = digits_.labels[static_cast<size_t>(digit)];
    const int height = digits_.shape.height;
    const int width = digits_.shape.width;
    blend(digit, {0, 0}, height, width, out, anywhere(random, side_ - height + 1, side_ - width + 1));
    const uint32_t pieces = kLeastPieces + random.below(kMostPieces - kLeastPieces + 1);
    for (uint32_t i = 0; i < pieces; ++i) {
      int64_t other = any_digit(random);
      while (other == digit) other = any_digit(random);
      const Spot from = anywhere(random, height - kPiece + 1, width - kPiece + 1);
      blend(other, from, kPiece, kPiece, out, anywhere(random, side_ - kPiece + 1, side_ - kPiece + 1));
    }
  }

 private:
  int64_t any_digit(base::Sequence& random) const {
    return range_.begin + static_cast<int64_t>(random.below(static_cast<uint32_t>(range_.size())));
  }

  void blend(int64_t digit, Spot from, int height, int width, uint8_t* out, Spot to) const {
    const uint8_t* image = digits_.bytes.data() + static_cast<size_t>(digit) * digits_.shape.size();
    for (int row = 0; row < height; ++row) {
      const uint8_t* src = image + (from.row + row) * digits_.shape.width + from.column;
      uint8_t* dst = out + (to.row + row) * side_ + to.column;
      for (int column = 0; column < width; ++column) dst[column] = std::max(dst[column], src[column]);
    }
  }

  const Examples& digits_;
  const base::Range range_;
  const int side_;
};

Examples make_split(const Drawer& drawer, int64_t count, uint64_t stream, const ClutterOptions& options, int classes) {
  Examples examples;
  examples.shape = {1, options.side, options.side};
  examples.classes = classes;
  examples.bytes.resize(static_cast<size_t>(count) * examples.shape.size());
  examples.labels.resize(static_cast<size_t>(count));
  for (size_t i = 0; i < examples.labels.size(); ++i) {
    base::Sequence random(options.seed, stream, i);
    drawer.draw(random, examples.bytes.data() + i * examples.shape.size(), examples.labels[i]);
  }
  return examples;
}

void check(const Dataset& digits, int64_t validation, const ClutterOptions& options) {
  const ImageShape& shape = digits.shape();
  const auto side_ok = [&](int side) { return side >= kPiece && side <= options.side; };
  if (shape.channels != 1 || !side_ok(shape.height) || !side_ok(shape.width) || digits.train.bytes.empty()) {
    throw UsageError(
        fmt::format("cluttered digits from images of {}; bytes of one channel, {} to {} a side are allowed",
                    to_string(shape), kPiece, options.side));
  }
  if (validation < 2 || digits.train.stored() - validation < 2 || digits.test.stored() < 2) {
    throw UsageError(fmt::format("cluttered digits from {} training and {} test images; at least 24 and 2 are needed",
                                 digits.train.stored(), digits.test.stored()));
  }
}

}  // namespace

Dataset clutter(const Dataset& digits, const ClutterOptions& options) {
  const int64_t all = digits.train.stored();
  const int64_t middle = all - all / kValidationShare;
  check(digits, all - middle, options);
  const int classes = digits.classes();
  Dataset dataset;
  dataset.origin = fmt::format("generated from seed {} and the digits in {}", options.seed, digits.origin);
  dataset.class_names = digits.class_names;
  const int side = options.side;
  dataset.train = make_split(Drawer(digits.train, {0, middle}, side), options.train, kTrainClutter, options, classes);
  dataset.validation =
      make_split(Drawer(digits.train, {middle, all}, side), options.validation, kValidationStream, options, classes);
  dataset.test =
      make_split(Drawer(digits.test, {0, digits.test.stored()}, side), options.test, kTestClutter, options, classes);
  return dataset;
}

}  // namespace lockstep::data
