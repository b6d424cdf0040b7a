#include "data/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr double kMostScale = 100;

/// Moves the elements from index `from` on into a new vector.
template <class T>
std::vector<T> split_off(std::vector<T>& values, size_t from) {
  if (from >= values.size()) return {};
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(from);
  std::vector<T> tail(middle, values.end());
  values.erase(middle, values.end());
  return tail;
}

Examples split_off(Examples& examples, int64_t from) {
  const auto first = static_cast<size_t>(from);
  const size_t pixels = examples.shape.size();
  Examples tail;
  tail.shape = examples.shape;
  tail.classes = examples.classes;
  tail.bytes = split_off(examples.bytes, first * pixels);
  tail.floats = split_off(examples.floats, first * pixels);
  tail.labels = split_off(examples.labels, first);
  tail.maker = examples.maker;
  tail.first_made = examples.first_made + from;
  return tail;
}

}  // namespace

std::string to_string(const ImageShape& shape) {
  return fmt::format("{}x{}x{}", shape.channels, shape.height, shape.width);
}

int64_t Examples::stored() const {
  if (maker) return static_cast<int64_t>(labels.size());
  const size_t values = bytes.empty() ? floats.size() : bytes.size();
  return values == 0 ? 0 : static_cast<int64_t>(values / shape.size());
}

void copy_image(const Examples& examples, int64_t index, std::span<float> pixels) {
  const int64_t at = index % examples.stored();
  const size_t begin = static_cast<size_t>(at) * pixels.size();
  if (examples.maker) {
    examples.maker->make(examples.first_made + at, pixels.data());
  } else if (examples.bytes.empty()) {
    std::copy_n(examples.floats.data() + begin, pixels.size(), pixels.data());
  } else {
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(examples.bytes[begin + i]) / 255.0F;
  }
}

void hold_out(Dataset& dataset, int64_t count) {
  const int64_t all = dataset.train.count();
  if (count < 0 || count >= all) {
    throw UsageError(
        fmt::format("holdout {}: {} has {} training examples; 0 to {} are allowed", count, dataset.name, all, all - 1));
  }
  if (!dataset.validation.empty()) {
    if (count == 0) return;
    throw UsageError(fmt::format("holdout {}: {} has a validation split of {} examples already; leave it at 0", count,
                                 dataset.name, dataset.validation.count()));
  }
  dataset.validation = split_off(dataset.train, all - count);
}

void keep_first(Examples& examples, int64_t count, const std::string& what) {
  if (count < 0 || count > examples.count()) {
    throw UsageError(fmt::format("cannot keep {} {}: there are only {} (0 keeps all)", count, what, examples.count()));
  }
  if (count == 0) return;
  split_off(examples, count);
  examples.bytes.shrink_to_fit();
  examples.floats.shrink_to_fit();
}

void rescale(Examples& examples, double factor) {
  if (!(factor > 0 && factor <= kMostScale)) {
    throw UsageError(fmt::format("data-scale {}: above 0 to {} is allowed", factor, kMostScale));
  }
  if (examples.empty()) return;
  const int64_t wanted = std::max<int64_t>(std::llround(factor * static_cast<double>(examples.stored())), 1);
  if (wanted < examples.stored()) {
    keep_first(examples, wanted, "training examples");
  } else if (wanted > examples.stored()) {
    examples.repeated = wanted;
  }
}

void check_labels(const Examples& examples, const std::string& source) {
  if (examples.count() != static_cast<int64_t>(examples.labels.size())) {
    throw DataError(fmt::format("{}: {} examples but {} labels", source, examples.count(), examples.labels.size()));
  }
  for (size_t i = 0; i < examples.labels.size(); ++i) {
    if (examples.labels[i] < 0 || examples.labels[i] >= examples.classes) {
      throw DataError(fmt::format("{}: label {} of example {} is out of range; 0 to {} are allowed", source,
                                  examples.labels[i], i, examples.classes - 1));
    }
  }
}

}  // namespace lockstep::data
