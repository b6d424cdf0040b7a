// Images to predict, from a file of any format that is known: idx (plain or gzip), npz, npy or PNG, told by content.
// Free functions, any thread; DataError or IoError names the file.
#pragma once

#include <span>
#include <string>

#include "data/dataset.h"

namespace lockstep::data {

struct ReadImagesOptions {
  ImageShape expected;      ///< what the model takes: other sizes are a DataError that names both; empty: anything
  std::string array;        ///< which array of an npz file; empty: the only one, or else the first that fits by name
  std::string label_array;  ///< its labels; empty: none are read, unless `array` is empty and the pair is found by name
};

Examples read_images(const std::string& path, const ReadImagesOptions& options = {});

/// A PNG of any kind as one image: bytes, 1 channel (luma, as PIL's mode L) or 3. Transparency is laid on black, as the
/// digits of MNIST are. At most 4096x4096.
Examples read_png(const std::string& path, int channels = 1);
Examples parse_png(std::span<const uint8_t> file, const std::string& name, int channels = 1);

}  // namespace lockstep::data
