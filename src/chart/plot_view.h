// The layout of a drawn chart (drawing.h): its series, scales, ticks and places, in points. Internal to this room.
#pragma once

#include <string>
#include <vector>

#include "chart/canvas.h"
#include "chart/chart.h"
#include "chart/drawing.h"
#include "chart/ticks.h"

namespace lockstep::chart {

struct DrawnSeries {
  const Series* data = nullptr;
  std::string name;
  std::string color;
  size_t shape = 0;
  bool twin = false;  ///< lies on an earlier series
};

struct LegendEntry {
  size_t series = 0;
  Point at;
};

/// A moment of the x axis. Its name stands above the plot, on one of some levels; it is empty if there is no room.
struct DrawnMark {
  double x = 0;
  size_t level = 0;
  std::string text;
  bool leftwards = false;
};

struct PlotView {
  const Chart* chart = nullptr;
  Font font;
  std::vector<DrawnSeries> series;
  std::vector<std::string> title;  ///< its lines
  std::vector<LegendEntry> legend;
  double width = 0;
  double height = 0;
  double left = 0;  ///< the inside of the plot
  double top = 0;
  double w = 0;
  double h = 0;
  Scale x;
  Scale y;
  Scale y2;
  std::vector<Tick> x_ticks;
  std::vector<Tick> y_ticks;
  std::vector<Tick> y2_ticks;
  std::vector<DrawnMark> marks;
  size_t mark_levels = 0;
  bool second = false;
  double turned = 0;  ///< the angle of long categories

  [[nodiscard]] bool discrete() const;
  /// Returns the width of a category.
  [[nodiscard]] double slot() const;
  [[nodiscard]] const Scale& scale_of(const Series& one) const { return one.second_axis ? y2 : y; }
  /// Returns the middle of a timeline's row.
  [[nodiscard]] double row_place(size_t row) const;
};

constexpr double kTextSize = 8;
constexpr double kTitleSize = 10;
constexpr double kTextHeight = 11;
constexpr double kMarkSize = 7;

PlotView view_of(const Chart& chart, const Look& look, const Font& font);
/// Returns the colour of a page's variable in light colours: "series-0", "soft".
std::string page_color(const std::string& name);
/// Returns the corners of a marker.
std::vector<Point> marker(size_t shape, Point at, double radius);

/// Draws the inside of the plot: lines, bars, stacks or spans.
void draw_inside(const PlotView& view, Canvas& canvas);

}  // namespace lockstep::chart
