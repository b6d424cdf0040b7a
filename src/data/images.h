// Examples to predict, from a file of any known format: idx (plain or gzip), npz, npy, PNG or JPEG, recognised by
// content, or CSV, recognised by name. Free functions, any thread; DataError or IoError names the file.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/resize.h"

namespace lockstep::data {

struct ReadImagesOptions {
  ImageShape expected;      ///< image shape of the model; other sizes are a DataError that names both; empty: any
  std::string array;        ///< array of an npz file; empty: the only one, or else the first with a known name
  std::string label_array;  ///< array of its labels; empty: none, unless `array` is empty and both are found by name
  std::string label_column = {};          ///< of a CSV file, see csv.h; files without it have no labels
  std::vector<std::string> classes = {};  ///< the model's classes, for a CSV file's labels in words; empty: any
  std::optional<Fit> fit = {};            ///< PNG and JPEG are resized to `expected`; unset: they must have its size
};

Examples read_images(const std::string& path, const ReadImagesOptions& options = {});

/// Reads a PNG of any kind as one image of bytes, with 1 channel (luma, as PIL's mode L) or 3. Transparent pixels are
/// blended with black, like the background of MNIST's digits. At most 4096x4096.
Examples read_png(const std::string& path, int channels = 1);
Examples parse_png(std::span<const uint8_t> file, const std::string& name, int channels = 1);

/// Reads a JPEG of any kind in the same way, upright as its Exif block says. At most 8192x8192; above 4096 it is read
/// at half that size. Damage is an error, also if a part could be read. Needs at most 700 MB of memory, for progressive
/// files of the largest size; 100 scans are allowed.
Examples read_jpeg(const std::string& path, int channels = 1);
Examples parse_jpeg(std::span<const uint8_t> file, const std::string& name, int channels = 1);

}  // namespace lockstep::data
