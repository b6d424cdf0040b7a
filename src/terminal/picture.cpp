#include "terminal/picture.h"

#include <algorithm>
#include <array>

#include "terminal/text.h"

namespace lockstep::terminal {
namespace {

constexpr std::array<const char*, 5> kBlocks{" ", "░", "▒", "▓", "█"};
constexpr std::array<const char*, 5> kAscii{" ", ".", "+", "*", "#"};

/// Returns the pixel from 0 to 1; rows beyond the last are empty.
float pixel(const std::vector<float>& image, const data::ImageShape& shape, int row, int column) {
  if (row >= shape.height) return 0;
  const size_t at = static_cast<size_t>(row) * static_cast<size_t>(shape.width) + static_cast<size_t>(column);
  return std::clamp(image[at], 0.0F, 1.0F);
}

}  // namespace

std::vector<std::string> picture(const data::Examples& examples, int64_t index, bool unicode) {
  const auto& shades = unicode ? kBlocks : kAscii;
  const data::ImageShape& shape = examples.shape;
  std::vector<float> image(shape.size());
  data::copy_image(examples, index, image);
  std::vector<std::string> lines;
  for (int row = 0; row < shape.height; row += 2) {
    std::string line;
    for (int column = 0; column < shape.width; ++column) {
      const float mean = (pixel(image, shape, row, column) + pixel(image, shape, row + 1, column)) / 2;
      line += shades[static_cast<size_t>(mean * (static_cast<float>(shades.size()) - 0.01F))];
    }
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> side_by_side(const std::vector<std::vector<std::string>>& blocks, size_t width) {
  size_t height = 0;
  for (const auto& block : blocks) height = std::max(height, block.size());
  std::vector<std::string> lines(height);
  for (size_t row = 0; row < height; ++row) {
    for (const auto& block : blocks) {
      lines[row] += padded_right(row < block.size() ? block[row] : "", width) + "   ";
    }
    lines[row].erase(lines[row].find_last_not_of(' ') + 1);
  }
  return lines;
}

}  // namespace lockstep::terminal
