// Examples in memory: a data set and its splits.
//
// Images stay as they were read, bytes (idx, PNG) or floats (npz); the Loader turns them into batches of float32.
// Plain values, owned by whoever holds them; Loaders borrow them and only read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::data {

struct ImageShape {
  int channels = 1;
  int height = 0;
  int width = 0;

  /// Values of one image.
  [[nodiscard]] size_t size() const {
    return static_cast<size_t>(channels) * static_cast<size_t>(height) * static_cast<size_t>(width);
  }
  bool operator==(const ImageShape&) const = default;
};

/// "1x28x28"
std::string to_string(const ImageShape& shape);

/// One split: images in order (channels, height, width each), and a label for each unless there are none to know.
struct Examples {
  ImageShape shape;
  int classes = 0;
  std::vector<uint8_t> bytes;   ///< images as bytes 0..255, or
  std::vector<float> floats;    ///< as floats that are used unscaled; one of the two is empty
  std::vector<int32_t> labels;  ///< 0..classes-1, or empty

  [[nodiscard]] int64_t count() const;
  [[nodiscard]] bool empty() const { return count() == 0; }
};

struct Dataset {
  std::string name;
  std::string origin;  ///< where it was found, for people
  std::vector<std::string> class_names;
  Examples train;
  Examples validation;  ///< empty unless held out
  Examples test;

  [[nodiscard]] const ImageShape& shape() const { return train.shape; }
  [[nodiscard]] int classes() const { return train.classes; }
};

/// Moves the last `count` training examples to the validation split. UsageError unless 0 <= count < training examples.
void hold_out(Dataset& dataset, int64_t count);

/// Keeps the first `count` examples; 0 keeps all. UsageError when there are fewer.
void keep_first(Examples& examples, int64_t count, const std::string& what);

/// DataError when a label lies outside 0..classes-1 or the counts of images and labels differ; `source` is named in it.
void check_labels(const Examples& examples, const std::string& source);

}  // namespace lockstep::data
