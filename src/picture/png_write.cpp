#include "picture/png_write.h"

#include <fmt/format.h>
#include <png.h>

#include "base/file.h"
#include "lockstep/error.h"

namespace lockstep::picture {
namespace {

constexpr int kMaxWrittenSide = 65500;

void check(const Bitmap& bitmap) {
  const auto side_ok = [](int side) { return side >= 1 && side <= kMaxWrittenSide; };
  if (!side_ok(bitmap.width) || !side_ok(bitmap.height) || (bitmap.channels != 1 && bitmap.channels != 3)) {
    throw UsageError(
        fmt::format("a PNG of {}x{} pixels and {} channels; 1 to {} a side and 1 or 3 channels are allowed",
                    bitmap.width, bitmap.height, bitmap.channels, kMaxWrittenSide));
  }
  const size_t wanted =
      static_cast<size_t>(bitmap.width) * static_cast<size_t>(bitmap.height) * static_cast<size_t>(bitmap.channels);
  if (bitmap.pixels.size() != wanted) {
    throw UsageError(fmt::format("the pixels of a PNG have {} bytes; {} are expected", bitmap.pixels.size(), wanted));
  }
}

}  // namespace

std::vector<uint8_t> encode_png(const Bitmap& bitmap) {
  check(bitmap);
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(bitmap.width);
  image.height = static_cast<png_uint_32>(bitmap.height);
  image.format = bitmap.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  image.flags = PNG_IMAGE_FLAG_FAST;  // half the time, for files that are half as large again
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::vector<uint8_t> file(size);
  if (png_image_write_to_memory(&image, file.data(), &size, 0, bitmap.pixels.data(), 0, nullptr) == 0) {
    const std::string reason = image.message;
    png_image_free(&image);
    throw IoError("cannot make a PNG: " + reason);
  }
  file.resize(size);
  return file;
}

void write_png(const std::string& path, const Bitmap& bitmap) { base::write_whole_file(path, encode_png(bitmap)); }

}  // namespace lockstep::picture
