#include <fmt/format.h>
#include <png.h>

#include <algorithm>

#include "base/file.h"
#include "data/images.h"
#include "data/luma.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr uint64_t kMaxPng = uint64_t{256} << 20;
constexpr uint32_t kMaxPngSide = 4096;

/// libpng's simplified reader: it never calls longjmp and keeps its last error as text.
class PngImage {
 public:
  PngImage(std::span<const uint8_t> file, const std::string& name) : name_(name) {
    image_.version = PNG_IMAGE_VERSION;
    if (png_image_begin_read_from_memory(&image_, file.data(), file.size()) == 0) fail();
    if (image_.width > kMaxPngSide || image_.height > kMaxPngSide) {
      const std::string seen = fmt::format("{}x{}", image_.width, image_.height);
      png_image_free(&image_);
      throw DataError(
          fmt::format("{}: a PNG of {} pixels; at most {}x{} are allowed", name_, seen, kMaxPngSide, kMaxPngSide));
    }
  }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
  ~PngImage() { png_image_free(&image_); }

  [[nodiscard]] int height() const { return static_cast<int>(image_.height); }
  [[nodiscard]] int width() const { return static_cast<int>(image_.width); }

  std::vector<uint8_t> read_rgba() {
    image_.format = PNG_FORMAT_RGBA;
    image_.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // keeps the values of 16-bit files: no gamma is applied
    std::vector<uint8_t> pixels(PNG_IMAGE_SIZE(image_));
    if (png_image_finish_read(&image_, nullptr, pixels.data(), 0, nullptr) == 0) fail();
    return pixels;
  }

 private:
  [[noreturn]] void fail() {
    const std::string reason = image_.message;
    png_image_free(&image_);
    throw DataError(fmt::format("{}: damaged PNG: {}", name_, reason));
  }

  const std::string& name_;
  png_image image_{};
};

uint8_t on_black(uint32_t value, uint32_t alpha) { return static_cast<uint8_t>((value * alpha + 127) / 255); }

}  // namespace

Examples parse_png(std::span<const uint8_t> file, const std::string& name, int channels) {
  if (channels != 1 && channels != 3) {
    throw UsageError(fmt::format("{}: a PNG cannot be read with {} channels; 1 and 3 are allowed", name, channels));
  }
  PngImage image(file, name);
  Examples examples;
  examples.shape = {channels, image.height(), image.width()};
  const std::vector<uint8_t> rgba = image.read_rgba();
  const size_t pixels = rgba.size() / 4;
  examples.bytes.resize(pixels * static_cast<size_t>(channels));
  for (size_t i = 0; i < pixels; ++i) {
    const uint8_t* pixel = rgba.data() + 4 * i;
    if (channels == 1) {
      examples.bytes[i] = on_black(luma(pixel), pixel[3]);
    } else {
      for (size_t c = 0; c < 3; ++c) examples.bytes[c * pixels + i] = on_black(pixel[c], pixel[3]);
    }
  }
  return examples;
}

Examples read_png(const std::string& path, int channels) {
  return parse_png(base::read_file(path, kMaxPng), path, channels);
}

}  // namespace lockstep::data
