#include "data/resize.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace lockstep::data {
namespace {

/// A stretch of one side of a picture.
struct Stretch {
  double begin = 0;
  double length = 0;
};

/// The old pixels under a new one, and their weights, which add up to 1.
struct Window {
  size_t first = 0;
  std::vector<float> weights;
};

std::vector<Window> make_windows(const Stretch& from, int old_size, int new_size) {
  const double step = from.length / new_size;
  const double reach = std::max(step, 1.0);
  std::vector<Window> windows(static_cast<size_t>(new_size));
  for (int i = 0; i < new_size; ++i) {
    const double centre = from.begin + (i + 0.5) * step;
    const int first = std::max(0, static_cast<int>(std::floor(centre - reach + 0.5)));
    const int last = std::min(old_size, static_cast<int>(std::floor(centre + reach + 0.5)));
    Window& window = windows[static_cast<size_t>(i)];
    window.first = static_cast<size_t>(first);
    double sum = 0;
    for (int j = first; j < last; ++j) {
      const double weight = std::max(0.0, 1 - std::abs((j + 0.5 - centre) / reach));
      window.weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (float& weight : window.weights) weight = static_cast<float>(weight / sum);
  }
  return windows;
}

/// Resizes one channel: first the rows, then the columns.
void resize_plane(const uint8_t* from, int old_width, int old_height, const std::vector<Window>& columns,
                  const std::vector<Window>& rows, uint8_t* to, size_t to_stride) {
  std::vector<float> narrow(static_cast<size_t>(old_height) * columns.size());
  for (size_t y = 0; y < static_cast<size_t>(old_height); ++y) {
    const uint8_t* line = from + y * static_cast<size_t>(old_width);
    for (size_t x = 0; x < columns.size(); ++x) {
      float sum = 0;
      for (size_t j = 0; j < columns[x].weights.size(); ++j) {
        sum += columns[x].weights[j] * static_cast<float>(line[columns[x].first + j]);
      }
      narrow[y * columns.size() + x] = sum;
    }
  }
  for (size_t y = 0; y < rows.size(); ++y) {
    for (size_t x = 0; x < columns.size(); ++x) {
      float sum = 0;
      for (size_t j = 0; j < rows[y].weights.size(); ++j) {
        sum += rows[y].weights[j] * narrow[(rows[y].first + j) * columns.size() + x];
      }
      to[y * to_stride + x] = static_cast<uint8_t>(std::clamp(std::lround(sum), 0L, 255L));
    }
  }
}

int part(int size, double scale, int most) { return std::clamp(static_cast<int>(std::lround(size * scale)), 1, most); }

}  // namespace

void resize(Examples& picture, int height, int width, Fit fit) {
  const ImageShape old = picture.shape;
  if (old.height == height && old.width == width) return;
  const double wide = static_cast<double>(width) / old.width;
  const double high = static_cast<double>(height) / old.height;
  Stretch across{0, static_cast<double>(old.width)};
  Stretch down{0, static_cast<double>(old.height)};
  int inner_width = width;
  int inner_height = height;
  if (fit == Fit::pad) {
    inner_width = part(old.width, std::min(wide, high), width);
    inner_height = part(old.height, std::min(wide, high), height);
  } else if (fit == Fit::crop) {
    const double scale = std::max(wide, high);
    across = {(old.width - width / scale) / 2, width / scale};
    down = {(old.height - height / scale) / 2, height / scale};
  }
  const std::vector<Window> columns = make_windows(across, old.width, inner_width);
  const std::vector<Window> rows = make_windows(down, old.height, inner_height);
  picture.shape = {old.channels, height, width};
  std::vector<uint8_t> bytes(picture.shape.size(), 0);
  const size_t corner = static_cast<size_t>((height - inner_height) / 2) * static_cast<size_t>(width) +
                        static_cast<size_t>((width - inner_width) / 2);
  const size_t old_plane = old.size() / static_cast<size_t>(old.channels);
  const size_t new_plane = bytes.size() / static_cast<size_t>(old.channels);
  for (size_t c = 0; c < static_cast<size_t>(old.channels); ++c) {
    resize_plane(picture.bytes.data() + c * old_plane, old.width, old.height, columns, rows,
                 bytes.data() + c * new_plane + corner, static_cast<size_t>(width));
  }
  picture.bytes = std::move(bytes);
}

}  // namespace lockstep::data
