#include "terminal/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "terminal/text.h"

namespace lockstep::terminal {
namespace {

constexpr std::array<char, 6> kSigns{'*', '+', 'o', 'x', '#', '@'};

struct Range {
  double low = 0;
  double high = 1;
  double middle = 0;  ///< position of all values if they are equal

  [[nodiscard]] bool flat() const { return !(low < high); }
  /// Returns the position from 0 to 1. Differences of huge numbers overflow; such values are placed at 0.
  [[nodiscard]] double place(double value) const {
    if (flat()) return middle;
    const double at = (value - low) / (high - low);
    return at >= 0 ? std::min(at, 1.0) : 0;
  }
};

Range range_of(const std::vector<Series>& series, bool y) {
  std::vector<double> all;
  for (const Series& s : series) {
    const std::vector<double>& values = y ? s.curve.y : s.curve.x;
    all.insert(all.end(), values.begin(), values.end());
  }
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  return {*low, *high, y ? 0.5 : 0};
}

/// The dots of a drawing: 2 x 4 per character in Braille, otherwise one per character.
class Canvas {
 public:
  Canvas(size_t columns, size_t rows, bool braille)
      : columns_(columns), rows_(rows), braille_(braille), dots_(columns * rows), owner_(columns * rows) {}

  [[nodiscard]] double width() const { return static_cast<double>(braille_ ? columns_ * 2 : columns_); }
  [[nodiscard]] double height() const { return static_cast<double>(braille_ ? rows_ * 4 : rows_); }

  /// Draws a line between two points; coordinates run from 0 to 1 from the lower left corner.
  void line(double x0, double y0, double x1, double y1, size_t series) {
    const double steps = std::ceil(std::max({std::fabs(x1 - x0) * width(), std::fabs(y1 - y0) * height(), 1.0}));
    for (double i = 0; i <= steps; ++i) dot(x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps, series);
  }

  [[nodiscard]] std::string row(const Terminal& terminal, size_t row) const {
    std::string result;
    for (size_t c = 0; c < columns_;) {
      const size_t series = owner_[row * columns_ + c];
      std::string stretch;  // stretch of text in one colour
      for (; c < columns_ && dots_[row * columns_ + c] != 0 && owner_[row * columns_ + c] == series; ++c) {
        stretch += braille_ ? braille_text(dots_[row * columns_ + c]) : std::string(1, kSigns[series % kSigns.size()]);
      }
      result += stretch.empty() ? " " : terminal.coloured(stretch, series);
      if (stretch.empty()) ++c;
    }
    return result;
  }

 private:
  void dot(double x, double y, size_t series) {
    const auto across = static_cast<size_t>(std::lround(x * (width() - 1)));
    const auto down = static_cast<size_t>(std::lround((1 - y) * (height() - 1)));
    // Bits of U+2800: two columns of four dots, the lowest ones last.
    constexpr std::array<std::array<uint8_t, 2>, 4> kBits{{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
    const size_t cell = braille_ ? (down / 4) * columns_ + across / 2 : down * columns_ + across;
    dots_[cell] |= braille_ ? kBits[down % 4][across % 2] : uint8_t{1};
    owner_[cell] = series;
  }

  static std::string braille_text(uint8_t dots) {
    return {static_cast<char>(0xE2), static_cast<char>(0xA0 | (dots >> 6U)), static_cast<char>(0x80 | (dots & 0x3FU))};
  }

  size_t columns_;
  size_t rows_;
  bool braille_;
  std::vector<uint8_t> dots_;
  std::vector<size_t> owner_;  ///< the last series with a dot in the cell
};

std::string plain_number(double value) { return fmt::format("{:.4g}", value); }

/// Returns whether to draw in Braille: without colours, its dots cannot tell several curves apart.
bool in_braille(const Terminal& terminal, size_t series) {
  return terminal.unicode && (terminal.colours || series == 1);
}

/// Returns the sign of a curve in the legend.
std::string mark(const Terminal& terminal, size_t series, bool braille) {
  return terminal.coloured(braille ? "⠒⠒" : std::string(2, kSigns[series % kSigns.size()]), series);
}

std::string heading(const Terminal& terminal, const std::vector<Series>& series, const ChartOptions& options,
                    bool braille) {
  std::string line = terminal.bold(options.title);
  for (size_t s = 0; s < series.size(); ++s) {
    if (series[s].name.empty()) continue;
    line += fmt::format("  {} {}", mark(terminal, s, braille), series[s].name);
  }
  return clipped(line, options.width);
}

void draw(Canvas& canvas, const std::vector<Series>& series, Range x, Range y) {
  for (size_t s = 0; s < series.size(); ++s) {
    const records::Curve& curve = series[s].curve;
    for (size_t i = 0; i < curve.size(); ++i) {
      const size_t before = i == 0 ? 0 : i - 1;
      canvas.line(x.place(curve.x[before]), y.place(curve.y[before]), x.place(curve.x[i]), y.place(curve.y[i]), s);
    }
  }
}

/// Returns the axis line: first value, label, last value.
std::string x_axis(const ChartOptions& options, Range x, size_t columns) {
  const auto text = options.x_text ? options.x_text : plain_number;
  const std::string left = text(x.low);
  const std::string right = x.flat() ? "" : text(x.high);
  const size_t used = display_width(left) + display_width(right);
  if (used >= columns) return padded_left(right, columns);
  const size_t free = columns - used;
  const std::string label = display_width(options.x_label) + 2 <= free ? options.x_label : "";
  const size_t before = (free - display_width(label)) / 2;
  return left + std::string(before, ' ') + label + std::string(free - before - display_width(label), ' ') + right;
}

}  // namespace

std::vector<std::string> line_chart(const Terminal& terminal, const std::vector<Series>& series,
                                    const ChartOptions& options) {
  if (std::all_of(series.begin(), series.end(), [](const Series& s) { return s.curve.size() == 0; })) return {};
  const bool braille = in_braille(terminal, series.size());
  const Range x = range_of(series, false);
  const Range y = range_of(series, true);
  const auto y_text = options.y_text ? options.y_text : plain_number;
  const size_t height = std::max<size_t>(options.height, 3);
  std::vector<std::string> labels(height);
  size_t margin = 0;
  for (const size_t r : {size_t{0}, height / 2, height - 1}) {
    if (y.flat() && r != height / 2) continue;
    labels[r] = y_text(y.high - (y.high - y.low) * static_cast<double>(r) / static_cast<double>(height - 1));
    margin = std::max(margin, display_width(labels[r]));
  }
  const size_t columns = std::max<size_t>(options.width, margin + 12) - margin - 2;
  Canvas canvas(columns, height, braille);
  draw(canvas, series, x, y);
  std::vector<std::string> lines{heading(terminal, series, options, braille)};
  for (size_t r = 0; r < height; ++r) {
    const std::string tick = terminal.unicode ? (labels[r].empty() ? "│" : "┤") : (labels[r].empty() ? "|" : "+");
    lines.push_back(padded_left(labels[r], margin) + " " + terminal.dim(tick) + canvas.row(terminal, r));
  }
  lines.push_back(std::string(margin + 2, ' ') + x_axis(options, x, columns));
  for (std::string& line : lines) line = padded_right(line, options.width);
  return lines;
}

std::vector<std::string> chart_legend(const Terminal& terminal, const std::vector<std::string>& names, size_t width) {
  std::vector<std::string> lines{""};
  for (size_t s = 0; s < names.size(); ++s) {
    const std::string entry = mark(terminal, s, in_braille(terminal, names.size())) + " " + names[s];
    if (!lines.back().empty() && display_width(lines.back()) + 2 + display_width(entry) > width) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : "  ") + clipped(entry, width);
  }
  return lines;
}

std::string beside(const std::vector<std::string>& left, const std::vector<std::string>& right, size_t width) {
  constexpr size_t kGap = 4;
  const auto block_width = [](const std::vector<std::string>& lines) {
    size_t most = 0;
    for (const std::string& line : lines) most = std::max(most, display_width(line));
    return most;
  };
  std::string result;
  const auto add = [&](std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
  };
  const size_t first = block_width(left);
  if (left.empty() || right.empty() || first + kGap + block_width(right) > width) {
    for (const std::string& line : left) add(line);
    if (!left.empty() && !right.empty()) result += "\n";
    for (const std::string& line : right) add(line);
    return result;
  }
  for (size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    add(padded_right(i < left.size() ? left[i] : "", first + kGap) + (i < right.size() ? right[i] : ""));
  }
  return result;
}

std::string sparkline(const Terminal& terminal, std::span<const double> values, size_t columns) {
  constexpr std::array<const char*, 8> kBlocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::array<const char*, 8> kLetters{"_", ".", "-", "~", "=", "+", "*", "#"};
  const std::vector<double> all = records::known_of(values);
  if (all.empty() || columns == 0) return "";
  const size_t bars = std::min(columns, all.size());
  std::vector<double> means;
  for (size_t b = 0; b < bars; ++b) {
    const size_t begin = b * all.size() / bars;
    const size_t end = (b + 1) * all.size() / bars;
    means.push_back(records::mean(std::span(all).subspan(begin, end - begin)));
  }
  const auto [low, high] = std::minmax_element(means.begin(), means.end());
  std::string result;
  for (const double value : means) {
    const double place = *high > *low ? (value - *low) / (*high - *low) : 0;
    const auto level = static_cast<size_t>(std::lround(place * (kBlocks.size() - 1)));
    result += terminal.unicode ? kBlocks[level] : kLetters[level];
  }
  return result;
}

std::string stacked_bar(const Terminal& terminal, const std::vector<BarPart>& parts, size_t columns) {
  std::string result;
  double sum = 0;
  size_t used = 0;
  for (const BarPart& part : parts) {
    if (!(part.share > 0)) continue;
    sum += part.share;
    const auto end = static_cast<size_t>(std::lround(std::min(sum, 1.0) * static_cast<double>(columns)));
    std::string filled;
    for (; used < end; ++used) filled += terminal.colours && terminal.unicode ? "█" : std::string(1, part.key);
    if (!filled.empty()) result += terminal.coloured(filled, part.colour);
  }
  return result;
}

}  // namespace lockstep::terminal
