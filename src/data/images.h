// Images to predict, from a file of any known format: idx (plain or gzip), npz, npy or PNG, recognised by content. Free
// functions, any thread; DataError or IoError names the file.
#pragma once

#include <span>
#include <string>

#include "data/dataset.h"

namespace lockstep::data {

struct ReadImagesOptions {
  ImageShape expected;      ///< image shape of the model; other sizes are a DataError that names both; empty: any
  std::string array;        ///< array of an npz file; empty: the only one, or else the first with a known name
  std::string label_array;  ///< array of its labels; empty: none, unless `array` is empty and both are found by name
};

Examples read_images(const std::string& path, const ReadImagesOptions& options = {});

/// Reads a PNG of any kind as one image of bytes, with 1 channel (luma, as PIL's mode L) or 3. Transparent pixels are
/// blended with black, like the background of MNIST's digits. At most 4096x4096.
Examples read_png(const std::string& path, int channels = 1);
Examples parse_png(std::span<const uint8_t> file, const std::string& name, int channels = 1);

}  // namespace lockstep::data
