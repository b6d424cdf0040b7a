// Examples in memory: a data set and its splits.
//
// Images stay as they were read, bytes (idx, PNG) or floats (npz, CSV), or are made when they are needed; the Loader
// turns them into batches of float32. Plain values, owned by whoever holds them; Loaders borrow them and only read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
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

/// Makes images instead of storing them. Any thread may call a const one.
class ImageMaker {
 public:
  virtual ~ImageMaker() = default;
  /// Image `index`, always the same values for the same index.
  virtual void make(int64_t index, float* pixels) const = 0;
};

/// One split: images in order (channels, height, width each), and a label for each unless there are none to know.
struct Examples {
  ImageShape shape;
  int classes = 0;
  std::vector<uint8_t> bytes;               ///< images as bytes 0..255, or
  std::vector<float> floats;                ///< as floats that are used unscaled, or
  std::shared_ptr<const ImageMaker> maker;  ///< made when needed, one per label; the other two are then empty
  int64_t first_made = 0;                   ///< what the maker calls image 0
  std::vector<int32_t> labels;              ///< 0..classes-1, or empty
  int64_t repeated = 0;                     ///< seen as this many: those stored, over and over; 0: as stored

  [[nodiscard]] int64_t stored() const;
  /// What a pass sees; example i is the stored one i % stored().
  [[nodiscard]] int64_t count() const { return repeated > 0 ? repeated : stored(); }
  [[nodiscard]] bool empty() const { return count() == 0; }
};

struct PixelScaling;

struct Dataset {
  std::string name;
  std::string origin;  ///< where it was found, for people
  std::vector<std::string> class_names;
  Examples train;
  Examples validation;  ///< empty unless the data set has one or some are held out
  Examples test;
  std::shared_ptr<const PixelScaling> pixels;  ///< where standardising was asked for

  [[nodiscard]] const ImageShape& shape() const { return train.shape; }
  [[nodiscard]] int classes() const { return train.classes; }
};

/// Image `index` as floats, bytes as 0..1.
void copy_image(const Examples& examples, int64_t index, std::span<float> pixels);

/// Moves the last `count` training examples to the validation split; 0 changes nothing. UsageError unless 0 <= count <
/// training examples, or where the data set has a validation split of its own.
void hold_out(Dataset& dataset, int64_t count);

/// Keeps the first `count` examples; 0 keeps all. UsageError when there are fewer.
void keep_first(Examples& examples, int64_t count, const std::string& what);

/// Makes the split `factor` times as large (rounded, at least 1): a fraction keeps the first part, a multiple repeats
/// the examples in turn without copying them. UsageError unless 0 < factor <= 100.
void rescale(Examples& examples, double factor);

/// DataError when a label lies outside 0..classes-1 or the counts of images and labels differ; `source` is named in it.
void check_labels(const Examples& examples, const std::string& source);

}  // namespace lockstep::data
