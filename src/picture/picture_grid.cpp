#include "picture/picture_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lockstep/error.h"

namespace lockstep::picture {
namespace {

constexpr int kPleasantSide = 96;
constexpr int kMostFactor = 64;
constexpr int64_t kMostSide = 16384;
constexpr uint8_t kBackground = 96;  ///< between black and white, so that an image's border is visible
constexpr uint8_t kCaptionBackground = 24;
constexpr int kMostTextScale = 2;
constexpr int kLineHeight = (kTextHeight + 3) * kMostTextScale;  ///< pixels
constexpr int kCaptionMargin = 2 * kMostTextScale;

int pleasant_factor(const data::ImageShape& shape) {
  const int side = std::max(shape.height, shape.width);
  return std::clamp((kPleasantSide + side - 1) / side, 1, kMostFactor);
}

}  // namespace

PictureGrid::PictureGrid(const data::ImageShape& shape, const PictureGridOptions& options)
    : shape_(shape), options_(options) {
  if ((shape.channels != 1 && shape.channels != 3) || shape.height < 1 || shape.width < 1) {
    throw UsageError(fmt::format("cannot draw images {}; 1 or 3 channels are allowed", to_string(shape)));
  }
  if (options.columns < 1 || options.gap < 0 || options.factor < 0 || options.factor > kMostFactor ||
      options.group < 0 || options.caption_lines < 0 || !(options.white > options.black)) {
    throw UsageError(fmt::format("cannot draw a grid of {} columns, gap {}, factor {}, black {}, white {}",
                                 options.columns, options.gap, options.factor, options.black, options.white));
  }
  if (options_.factor == 0) options_.factor = pleasant_factor(shape);
}

void PictureGrid::add(const float* image, Caption caption) {
  captions_.push_back(std::move(caption));
  const auto channels = static_cast<size_t>(shape_.channels);
  const size_t plane = shape_.size() / channels;
  const float scale = 255.0F / (options_.white - options_.black);
  for (size_t i = 0; i < plane; ++i) {
    for (size_t c = 0; c < channels; ++c) {
      const float value = (image[c * plane + i] - options_.black) * scale;
      bytes_.push_back(value > 0 ? static_cast<uint8_t>(std::lround(std::min(value, 255.0F))) : uint8_t{0});
    }
  }
}

int64_t PictureGrid::gaps_before(int64_t column) const {
  return options_.group == 0 ? 0 : 2 * (column / options_.group);
}

int PictureGrid::cell_height() const {
  if (options_.caption_lines == 0) return shape_.height;
  const int pixels = options_.caption_lines * kLineHeight + kCaptionMargin;
  return shape_.height + (pixels + options_.factor - 1) / options_.factor;
}

int PictureGrid::text_scale() const {
  int widest = 1;
  for (const Caption& caption : captions_) {
    for (const std::string& line : caption.lines) widest = std::max(widest, text_width(line));
  }
  return std::clamp(shape_.width * options_.factor / widest, 1, kMostTextScale);
}

Bitmap PictureGrid::picture() const {
  const int64_t images = count();
  if (images == 0) throw UsageError("cannot draw a picture without images");
  const int64_t columns = std::min<int64_t>(images, options_.columns);
  const int64_t rows = (images + columns - 1) / columns;
  const auto extent = [&](int64_t cells, int side, int64_t more_gaps) {
    const int64_t pixels = (cells * (int64_t{side} + options_.gap) + (1 + more_gaps) * options_.gap) * options_.factor;
    if (pixels > kMostSide) {
      throw UsageError(fmt::format("a picture of {} pixels a side; at most {} are allowed", pixels, kMostSide));
    }
    return static_cast<int>(pixels);
  };
  Bitmap bitmap{extent(columns, shape_.width, gaps_before(columns - 1)),
                extent(rows, cell_height(), 0),
                options_.caption_lines > 0 ? 3 : shape_.channels,
                {}};
  bitmap.pixels.assign(
      static_cast<size_t>(bitmap.width) * static_cast<size_t>(bitmap.height) * static_cast<size_t>(bitmap.channels),
      kBackground);
  for (int64_t i = 0; i < images; ++i) draw(static_cast<size_t>(i), bitmap);
  return bitmap;
}

void PictureGrid::draw(size_t index, Bitmap& bitmap) const {
  const auto factor = static_cast<size_t>(options_.factor);
  const auto channels = static_cast<size_t>(shape_.channels);
  const auto columns = static_cast<size_t>(options_.columns);
  const auto gap = static_cast<size_t>(options_.gap);
  const auto begin_of = [&](size_t cell, int side, size_t more_gaps) {
    return (cell * (static_cast<size_t>(side) + gap) + (1 + more_gaps) * gap) * factor;
  };
  const size_t column = index % columns;
  const size_t top = begin_of(index / columns, cell_height(), 0);
  const size_t left = begin_of(column, shape_.width, static_cast<size_t>(gaps_before(static_cast<int64_t>(column))));
  const auto width = static_cast<size_t>(shape_.width);
  const auto drawn = static_cast<size_t>(bitmap.channels);
  const size_t row = static_cast<size_t>(bitmap.width) * drawn;
  const uint8_t* src = bytes_.data() + index * shape_.size();
  uint8_t* dst = bitmap.pixels.data() + top * row + left * drawn;
  for (int y = 0; y < shape_.height; ++y, dst += factor * row) {
    uint8_t* to = dst;
    for (size_t x = 0; x < width; ++x, src += channels) {
      for (size_t i = 0; i < factor; ++i, to += drawn) {
        for (size_t c = 0; c < drawn; ++c) to[c] = src[channels == 1 ? 0 : c];
      }
    }
    for (size_t i = 1; i < factor; ++i) std::copy_n(dst, width * factor * drawn, dst + i * row);
  }
  if (options_.caption_lines > 0) {
    draw_caption(captions_[index], static_cast<int>(left), static_cast<int>(top) + shape_.height * options_.factor,
                 bitmap);
  }
}

void PictureGrid::draw_caption(const Caption& caption, int left, int top, Bitmap& bitmap) const {
  const int width = shape_.width * options_.factor;
  const int height = (cell_height() - shape_.height) * options_.factor;
  for (int y = top; y < top + height; ++y) {
    const size_t begin = (static_cast<size_t>(y) * static_cast<size_t>(bitmap.width) + static_cast<size_t>(left)) * 3;
    std::fill_n(bitmap.pixels.begin() + static_cast<ptrdiff_t>(begin), 3 * width, kCaptionBackground);
  }
  const int scale = text_scale();
  const size_t lines = std::min(caption.lines.size(), static_cast<size_t>(options_.caption_lines));
  for (size_t i = 0; i < lines; ++i) {
    std::string line = caption.lines[i];
    while (text_width(line) * scale > width) line.pop_back();
    const int line_top = top + kCaptionMargin + static_cast<int>(i) * kLineHeight;
    draw_text(bitmap, left + (width - text_width(line) * scale) / 2, line_top, line, caption.colour, scale);
  }
}

}  // namespace lockstep::picture
