// Draws the inside of a plot: lines with bands and markers, bars, stacks, spans.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>

#include "chart/plot_view.h"

namespace lockstep::chart {
namespace {

/// Points of a curve from which on only some have markers.
constexpr size_t kFewPoints = 24;

struct Placed {
  Point at;
  size_t index = 0;
};
using Piece = std::vector<Placed>;

std::vector<Piece> pieces(const PlotView& view, const Series& series) {
  const Scale& y = view.scale_of(series);
  std::vector<Piece> result;
  bool open = false;
  for (size_t i = 0; i < series.x.size(); ++i) {
    const bool drawn = view.x.takes(series.x[i]) && y.takes(series.y[i]);
    if (drawn && !open) result.emplace_back();
    if (drawn) result.back().push_back({{view.x(series.x[i]), y(series.y[i])}, i});
    open = drawn;
  }
  return result;
}

void draw_band(const PlotView& view, const DrawnSeries& one, const Piece& piece, Canvas& canvas) {
  const Series& series = *one.data;
  if (series.low.size() != series.x.size() || series.high.size() != series.x.size() || piece.size() < 2) return;
  const Scale& y = view.scale_of(series);
  std::vector<Point> outline;
  for (const Placed& place : piece) {
    outline.push_back({place.at.x, y(std::min(series.high[place.index], y.domain().second))});
  }
  for (auto place = piece.rbegin(); place != piece.rend(); ++place) {
    const double low = series.low[place->index];
    outline.push_back({place->at.x, y(y.takes(low) ? std::max(low, y.domain().first) : y.domain().first)});
  }
  canvas.area(outline, {.color = one.color, .opacity = 0.16});
}

void draw_line(const PlotView& view, const DrawnSeries& one, size_t order, Canvas& canvas) {
  const Series& series = *one.data;
  std::vector<Placed> all;
  std::vector<double> dash;
  if (series.dashed) dash = {4, 3};
  if (one.twin) dash = {6, 6};
  for (const Piece& piece : pieces(view, series)) {
    draw_band(view, one, piece, canvas);
    std::vector<Point> points;
    for (const Placed& place : piece) points.push_back(place.at);
    canvas.line(points, {.color = one.color, .width = 1.3, .dash = dash});
    all.insert(all.end(), piece.begin(), piece.end());
  }
  const bool few = all.size() <= kFewPoints;
  if (!few && view.series.size() < 2) return;
  const size_t every = few ? 1 : (all.size() + 5) / 6;
  const size_t first =
      few ? 0 : static_cast<size_t>(static_cast<double>(every) * (0.3 + 0.11 * static_cast<double>(order))) % every;
  for (size_t i = first; i < all.size(); i += every)
    canvas.area(marker(one.shape, all[i].at, 2.3), {.color = one.color});
}

void draw_bars(const PlotView& view, Canvas& canvas) {
  const auto count = static_cast<double>(std::max<size_t>(1, view.series.size()));
  const double pitch = std::min(40.0, view.slot() * 0.78 / count);
  const double width = std::max(0.8, pitch > 4 ? pitch - 1 : pitch);
  for (size_t place = 0; place < view.series.size(); ++place) {
    const DrawnSeries& one = view.series[place];
    const Series& series = *one.data;
    const Scale& y = view.scale_of(series);
    const double base = y(y.log() ? y.domain().first : std::max(0.0, y.domain().first));
    for (size_t i = 0; i < series.x.size(); ++i) {
      if (!y.takes(series.y[i])) continue;
      const double left = view.x(series.x[i]) + (static_cast<double>(place) - count / 2) * pitch + (pitch - width) / 2;
      const double top = y(series.y[i]);
      const std::vector<Point> corners{{left, base}, {left, top}, {left + width, top}, {left + width, base}};
      canvas.area(corners, {.color = one.color, .opacity = series.dashed ? 0.14 : 1});
      if (series.dashed) canvas.line(corners, {.color = one.color, .width = 0.9, .dash = {3, 2}});
      if (i >= series.low.size() || i >= series.high.size() || !(series.high[i] > series.low[i])) continue;
      const double x = left + width / 2;
      const double low = y(std::max(series.low[i], y.domain().first));
      const double high = y(series.high[i]);
      const Paint paint{.color = page_color("text"), .width = 0.8};
      canvas.line({{x, low}, {x, high}}, paint);
      for (const double end : {low, high}) canvas.line({{x - 2.5, end}, {x + 2.5, end}}, paint);
    }
  }
}

void draw_stacks(const PlotView& view, Canvas& canvas) {
  const double width = std::clamp(view.slot() * 0.62, 2.0, 54.0);
  std::map<double, double> tops;
  for (const DrawnSeries& one : view.series) {
    for (size_t i = 0; i < one.data->x.size(); ++i) {
      const double value = one.data->y[i];
      if (!(value > 0)) continue;
      double& from = tops[one.data->x[i]];
      const double left = view.x(one.data->x[i]) - width / 2;
      const double low = view.y(from);
      const double high = view.y(from += value);
      canvas.area({{left, low}, {left, high}, {left + width, high}, {left + width, low}}, {.color = one.color});
      canvas.line({{left, high}, {left + width, high}}, {.color = "#ffffff", .width = 0.8});
    }
  }
}

void draw_spans(const PlotView& view, Canvas& canvas) {
  const double half = std::min(7.0, view.h / std::max<double>(1, static_cast<double>(view.chart->rows.size())) * 0.31);
  for (const Span& span : view.chart->spans) {
    const auto one = std::find_if(view.series.begin(), view.series.end(),
                                  [&](const DrawnSeries& s) { return s.data->name == span.name; });
    const double y = view.row_place(span.row);
    const double from = view.x(span.from);
    const double to = std::max(view.x(span.to), from + 1);
    canvas.area({{from, y - half}, {to, y - half}, {to, y + half}, {from, y + half}},
                {.color = one == view.series.end() ? page_color("soft") : one->color});
  }
}

}  // namespace

std::vector<Point> marker(size_t shape, Point at, double radius) {
  using Shape = std::vector<Point>;
  static const std::array<Shape, 5> kShapes{{{{-0.9, -0.9}, {0.9, -0.9}, {0.9, 0.9}, {-0.9, 0.9}},
                                             {{0, -1.2}, {1.1, 0.8}, {-1.1, 0.8}},
                                             {{0, -1.3}, {1.2, 0}, {0, 1.3}, {-1.2, 0}},
                                             {{0, 1.2}, {1.1, -0.8}, {-1.1, -0.8}},
                                             {{-1.1, -0.4},
                                              {-0.4, -0.4},
                                              {-0.4, -1.1},
                                              {0.4, -1.1},
                                              {0.4, -0.4},
                                              {1.1, -0.4},
                                              {1.1, 0.4},
                                              {0.4, 0.4},
                                              {0.4, 1.1},
                                              {-0.4, 1.1},
                                              {-0.4, 0.4},
                                              {-1.1, 0.4}}}};
  constexpr int kCorners = 24;
  Shape corners;
  if (shape % 6 == 0) {
    for (int i = 0; i < kCorners; ++i) {
      const double angle = 2 * std::numbers::pi * i / kCorners;
      corners.push_back({std::cos(angle), std::sin(angle)});
    }
  } else {
    corners = kShapes.at(shape % 6 - 1);
  }
  for (Point& corner : corners) corner = {at.x + corner.x * radius, at.y + corner.y * radius};
  return corners;
}

void draw_inside(const PlotView& view, Canvas& canvas) {
  switch (view.chart->kind) {
    case Kind::bar:
      return draw_bars(view, canvas);
    case Kind::stack:
      return draw_stacks(view, canvas);
    case Kind::timeline:
      return draw_spans(view, canvas);
    case Kind::line:
      for (size_t i = 0; i < view.series.size(); ++i) draw_line(view, view.series[i], i, canvas);
  }
}

}  // namespace lockstep::chart
