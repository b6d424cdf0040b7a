#include "data/exif.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace lockstep::data {
namespace {

constexpr std::string_view kExif{"Exif\0\0", 6};
constexpr uint16_t kOrientationTag = 0x0112;
constexpr uint16_t kShort = 3;
constexpr size_t kEntry = 12;  ///< bytes of an entry: tag, type, count, value

/// Numbers of a TIFF header in its byte order; 0 beyond its end.
class Tiff {
 public:
  explicit Tiff(std::span<const uint8_t> bytes) : bytes_(bytes), big_(!bytes.empty() && bytes[0] == 'M') {}

  [[nodiscard]] uint16_t u16(size_t at) const { return static_cast<uint16_t>(number(at, 2)); }
  [[nodiscard]] uint32_t u32(size_t at) const { return number(at, 4); }

 private:
  [[nodiscard]] uint32_t number(size_t at, size_t count) const {
    if (at > bytes_.size() || bytes_.size() - at < count) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < count; ++i) value = value << 8 | bytes_[at + (big_ ? i : count - 1 - i)];
    return value;
  }

  std::span<const uint8_t> bytes_;
  bool big_;
};

}  // namespace

int exif_orientation(std::span<const uint8_t> block) {
  if (block.size() < kExif.size() || !std::equal(kExif.begin(), kExif.end(), block.begin())) return 1;
  const Tiff tiff(block.subspan(kExif.size()));
  if (tiff.u16(2) != 42) return 1;
  const size_t folder = tiff.u32(4);
  const size_t entries = tiff.u16(folder);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = folder + 2 + i * kEntry;
    if (tiff.u16(entry) != kOrientationTag || tiff.u16(entry + 2) != kShort) continue;
    const int value = tiff.u16(entry + 8);
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

void make_upright(Examples& picture, int orientation) {
  if (orientation <= 1 || orientation > 8) return;
  const ImageShape from = picture.shape;
  // 2, 3, 4: mirrored, upside down, both. From 5 on, rows and columns change places as well.
  const bool transposed = orientation >= 5;
  const bool flip_x = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool flip_y = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  ImageShape to = from;
  if (transposed) std::swap(to.height, to.width);
  std::vector<uint8_t> bytes(picture.bytes.size());
  size_t out = 0;
  for (int c = 0; c < to.channels; ++c) {
    for (int y = 0; y < to.height; ++y) {
      for (int x = 0; x < to.width; ++x) {
        int column = transposed ? y : x;
        int row = transposed ? x : y;
        if (flip_x) column = from.width - 1 - column;
        if (flip_y) row = from.height - 1 - row;
        bytes[out++] =
            picture.bytes[(static_cast<size_t>(c) * static_cast<size_t>(from.height) + static_cast<size_t>(row)) *
                              static_cast<size_t>(from.width) +
                          static_cast<size_t>(column)];
      }
    }
  }
  picture.shape = to;
  picture.bytes = std::move(bytes);
}

}  // namespace lockstep::data
