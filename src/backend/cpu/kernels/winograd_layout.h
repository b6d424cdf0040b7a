// Memory layout of the transformed points: 36 matrices of rows (tiles) x channels, either row by row or in panels of
// channels for the right-hand side of a product. Distances avoid powers of two, which cause cache conflicts.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lockstep::backend::cpu {

struct PointRows {
  PointRows(int64_t rows, int64_t channels) : row(channels + 16), point(rows * row + 16) {}
  int64_t row;    ///< floats between rows
  int64_t point;  ///< floats between points

  [[nodiscard]] int64_t size() const { return 36 * point; }
};

struct PointPanels {
  /// Panels as wide as the product's tiles of registers: four vectors of 16, or two of 8.
  PointPanels(int64_t row_count, int64_t channel_count, int lanes)
      : rows(row_count),
        channels(channel_count),
        widest(lanes == 16 ? 64 : 16),
        point(row_count * channel_count + 16) {}
  int64_t rows;
  int64_t channels;
  int64_t widest;
  int64_t point;  ///< floats between points

  [[nodiscard]] int64_t count() const { return (channels + widest - 1) / widest; }
  [[nodiscard]] int64_t width(int64_t panel) const { return std::min(widest, channels - panel * widest); }
  [[nodiscard]] int64_t at(int64_t panel) const { return panel * widest * rows; }
  [[nodiscard]] int64_t at(int64_t row, int64_t channel) const {
    const int64_t panel = channel / widest;
    return at(panel) + row * width(panel) + channel % widest;
  }
  [[nodiscard]] int64_t size() const { return 36 * point; }
};

}  // namespace lockstep::backend::cpu
