// Writes PNG files of 8 bits a channel. A file appears whole or not at all. Free functions, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::picture {

/// Rows of pixels, `channels` bytes each: 1 is gray, 3 is red, green, blue.
struct Bitmap {
  int width = 0;
  int height = 0;
  int channels = 1;
  std::vector<uint8_t> pixels;  ///< width x height x channels
};

/// Returns the file's bytes. Throws UsageError for a bitmap that is empty, too large (65500 a side), or not of 1 or 3
/// channels.
std::vector<uint8_t> encode_png(const Bitmap& bitmap);
/// Writes the file; throws IoError if that fails.
void write_png(const std::string& path, const Bitmap& bitmap);

}  // namespace lockstep::picture
