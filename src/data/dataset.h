// Examples in memory: a data set and its splits.
//
// Images stay in the form they were read in: bytes (idx, PNG) or floats (npz, CSV), or they are generated when needed.
// The Loader turns them into batches of float32. Plain values, owned by their holder; Loaders borrow them and only
// read.
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

  /// Returns the number of values of one image.
  [[nodiscard]] size_t size() const {
    return static_cast<size_t>(channels) * static_cast<size_t>(height) * static_cast<size_t>(width);
  }
  bool operator==(const ImageShape&) const = default;
};

/// Returns "1x28x28".
std::string to_string(const ImageShape& shape);

/// Generates images instead of storing them. Any thread may call a const one.
class ImageMaker {
 public:
  virtual ~ImageMaker() = default;
  /// Makes image `index`; the same index always gives the same values.
  virtual void make(int64_t index, float* pixels) const = 0;
};

/// One split: images in order (channels, height, width each), and a label for each, or no labels.
struct Examples {
  ImageShape shape;
  int classes = 0;
  std::vector<uint8_t> bytes;               ///< images as bytes 0..255, or
  std::vector<float> floats;                ///< as floats, which are not scaled, or
  std::shared_ptr<const ImageMaker> maker;  ///< generated when needed, one per label; the other two are then empty
  int64_t first_made = 0;                   ///< the maker's index of image 0
  std::vector<int32_t> labels;              ///< 0..classes-1, or empty
  int64_t repeated = 0;                     ///< number of examples in a pass, the stored ones repeated; 0: as stored

  [[nodiscard]] int64_t stored() const;
  /// Returns the number of examples in a pass; example i is the stored one i % stored().
  [[nodiscard]] int64_t count() const { return repeated > 0 ? repeated : stored(); }
  [[nodiscard]] bool empty() const { return count() == 0; }
};

struct PixelScaling;

struct Dataset {
  std::string name;
  std::string origin;  ///< source of the data, for people
  std::vector<std::string> class_names;
  Examples train;
  Examples validation;  ///< empty unless the data set has one or some examples are held out
  Examples test;
  std::shared_ptr<const PixelScaling> pixels;  ///< set if standardising was requested

  [[nodiscard]] const ImageShape& shape() const { return train.shape; }
  [[nodiscard]] int classes() const { return train.classes; }
};

/// Copies image `index` as floats; bytes become 0..1.
void copy_image(const Examples& examples, int64_t index, std::span<float> pixels);

/// Moves the last `count` training examples to the validation split; 0 changes nothing. Throws UsageError unless 0 <=
/// count < training examples, or if the data set has its own validation split.
void hold_out(Dataset& dataset, int64_t count);

/// Keeps the first `count` examples; 0 keeps all. Throws UsageError if there are fewer.
void keep_first(Examples& examples, int64_t count, const std::string& what);

/// Makes the split `factor` times as large (rounded, at least 1). A fraction keeps the first part; a multiple repeats
/// the examples in turn without copying them. Throws UsageError unless 0 < factor <= 100.
void rescale(Examples& examples, double factor);

/// Throws DataError if a label lies outside 0..classes-1 or the counts of images and labels differ; the error names
/// `source`.
void check_labels(const Examples& examples, const std::string& source);

}  // namespace lockstep::data
