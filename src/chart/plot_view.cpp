#include "chart/plot_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace lockstep::chart {
namespace {

using Range = std::pair<double, double>;

constexpr size_t kColors = 8;
constexpr size_t kLongestCategory = 32;
constexpr double kSwatch = 20;
constexpr double kRowHeight = 20;
constexpr double kPointsPerMillimetre = 72 / 25.4;
constexpr double kAslant = 14;  // long categories at least so far apart are written at an angle
constexpr double kUpright = 9;  // others upright; some are left out if these are too many as well
constexpr size_t kMarkLevels = 4;

std::string shortened(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80) --end;  // not within a character
  return text.substr(0, end) + "…";
}

bool same_points(const Series& a, const Series& b) {
  const auto equal = [](const std::vector<double>& one, const std::vector<double>& other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                      [](double p, double q) { return p == q || (std::isnan(p) && std::isnan(q)); });
  };
  return a.second_axis == b.second_axis && !a.y.empty() && equal(a.x, b.x) && equal(a.y, b.y);
}

/// Returns the series of the chart; of a timeline, those that its spans name.
std::vector<DrawnSeries> series_of(const Chart& chart) {
  std::vector<DrawnSeries> list;
  std::map<size_t, size_t> used;
  size_t next = 0;
  for (size_t i = 0; i < chart.series.size(); ++i) {
    const Series& data = chart.series[i];
    const bool drawn = chart.kind != Kind::timeline || std::any_of(chart.spans.begin(), chart.spans.end(),
                                                                   [&](const Span& s) { return s.name == data.name; });
    if (!drawn) continue;
    const size_t tint = data.color >= 0 ? static_cast<size_t>(data.color) : next++;
    DrawnSeries one{&data, data.name, page_color(fmt::format("series-{}", tint % kColors)), tint + used[tint]++, false};
    const auto twin = std::find_if(list.begin(), list.end(),
                                   [&](const DrawnSeries& other) { return same_points(*other.data, data); });
    if (twin != list.end()) {
      one.twin = true;
      one.name += " (same as " + twin->name + ")";
    }
    list.push_back(std::move(one));
  }
  return list;
}

void widen(Range& range, double value, bool log) {
  if (!std::isfinite(value) || (log && value <= 0)) return;
  range = {std::fmin(range.first, value), std::fmax(range.second, value)};
}

Range nothing() { return {INFINITY, -INFINITY}; }

/// Returns a domain with some margin, from zero if that takes little room.
Range roomy(Range range, const Axis& axis, bool zero) {
  auto [low, high] = range.first <= range.second ? range : axis.log ? Range{1, 10} : Range{0, 1};
  if (axis.log) return are_same(low, high) ? Range{low / 2, high * 2} : Range{low / 1.15, high * 1.15};
  const double most = axis.unit == "share" ? 1 : axis.unit == "percent" ? 100 : INFINITY;
  if (zero || (low >= 0 && low < 0.5 * high)) low = std::min(low, 0.0);
  if (are_same(low, high)) {
    const double above = std::min(high + std::fabs(high) * 0.1, std::max(most, high));
    return low == 0 ? Range{0, 1} : Range{low - std::fabs(low) * 0.1, above};
  }
  const double air = (high - low) * 0.06;
  const double above = high <= most ? std::min(high + air, std::max(most, high)) : high + air;
  return {low == 0 ? 0 : low - air, high == 0 ? 0 : above};
}

Range y_domain(const PlotView& view, const Axis& axis, bool second) {
  const Kind kind = view.chart->kind;
  Range range = nothing();
  Range bands = nothing();
  std::map<double, double> sums;
  for (const DrawnSeries& one : view.series) {
    if (one.data->second_axis != second) continue;
    for (size_t i = 0; i < one.data->y.size(); ++i) {
      const double value = one.data->y[i];
      if (kind == Kind::stack && std::isfinite(value)) sums[one.data->x[i]] += std::max(0.0, value);
      if (kind != Kind::stack) widen(range, value, axis.log);
      if (i < one.data->low.size()) widen(bands, one.data->low[i], axis.log);
      if (i < one.data->high.size()) widen(bands, one.data->high[i], axis.log);
    }
  }
  if (kind == Kind::line) bands = drawn_band(range, bands, axis.log);
  for (const double end : {bands.first, bands.second}) widen(range, end, axis.log);
  for (const auto& [x, sum] : sums) widen(range, sum, axis.log);
  for (const double value : axis.shows) widen(range, value, axis.log);
  const std::set<std::string> from_zero{"s", "percent", "B", "B/s"};
  return roomy(range, axis, kind == Kind::stack || kind == Kind::bar || from_zero.contains(axis.unit));
}

Range x_domain(const PlotView& view) {
  const Chart& chart = *view.chart;
  if (view.discrete()) return {-0.5, std::max<double>(static_cast<double>(chart.x.categories.size()), 1) - 0.5};
  Range range = nothing();
  if (chart.kind == Kind::timeline) {
    range = {0, -INFINITY};
    for (const Span& span : chart.spans) {
      widen(range, span.from, false);
      widen(range, span.to, false);
    }
    for (const Mark& mark : chart.marks) widen(range, mark.x, false);
    for (const double value : chart.x.shows) widen(range, value, false);
    return range.first < range.second ? range : Range{0, 1};
  }
  for (const double value : chart.x.shows) widen(range, value, chart.x.log);
  std::set<double> places;
  for (const DrawnSeries& one : view.series) {
    for (const double x : one.data->x) {
      widen(range, x, chart.x.log);
      places.insert(x);
    }
  }
  if (range.first == range.second && range.first > 0 && !chart.x.log) return {0, 2 * range.first};
  if (!(range.first < range.second)) return roomy(range, chart.x, false);
  if (!chart.x.log && !chart.x.at_values && range.first > 0 && range.first < 0.3 * range.second) range.first = 0;
  if (places.size() > 24 || range.first == 0) return range;
  if (chart.x.log) {
    const double air = std::pow(range.second / range.first, 0.04);
    return {range.first / air, range.second * air};
  }
  const double air = (range.second - range.first) * 0.04;
  return {range.first - air, range.second + air};
}

std::vector<Tick> ticks_of(const Axis& axis, Range domain, double room, double each, bool whole = false) {
  const int count = std::max(3, static_cast<int>(room / each));
  return axis.log ? log_ticks(domain.first, domain.second, count, axis.unit)
                  : linear_ticks(domain.first, domain.second, count, axis.unit, whole);
}

/// Breaks a text into lines of at most this width.
std::vector<std::string> lines_of(const Font& font, const std::string& text, double size, double width) {
  std::vector<std::string> lines;
  std::string line;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string longer = (line.empty() ? "" : line + " ") + text.substr(begin, end - begin);
    if (!line.empty() && text_width(font, longer, size, true) > width) {
      lines.push_back(line);
      line = text.substr(begin, end - begin);
    } else {
      line = longer;
    }
    begin = end + 1;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

/// Places the legend below `top`, and returns its height.
double place_legend(PlotView& view, double top) {
  if (view.series.size() < 2 && view.chart->kind != Kind::timeline) return 0;
  double x = 0;
  double y = top + kTextSize;
  for (size_t i = 0; i < view.series.size(); ++i) {
    const double need = kSwatch + text_width(view.font, view.series[i].name, kTextSize) + 10;
    if (x > 0 && x + need > view.width) {
      x = 0;
      y += kTextHeight + 1;
    }
    view.legend.push_back({i, {x, y}});
    x += need;
  }
  return y + 8 - top;
}

double widest(const PlotView& view, const std::vector<Tick>& ticks) {
  double most = 0;
  for (const Tick& tick : ticks) most = std::max(most, text_width(view.font, tick.text, kTextSize));
  return most;
}

std::set<double> x_values(const PlotView& view) {
  std::set<double> values;
  for (const DrawnSeries& one : view.series) {
    for (const double x : one.data->x) {
      if (view.x.takes(x)) values.insert(x);
    }
  }
  return values;
}

/// Returns ticks at the data's own values, without those that would overlap.
std::vector<Tick> value_ticks(const PlotView& view) {
  const std::set<double> values = x_values(view);
  std::vector<Tick> ticks;
  if (values.size() > 10) return ticks;
  double end = -INFINITY;
  for (const double value : values) {
    const std::string text = value_text(value, view.chart->x.unit);
    const double half = text_width(view.font, text, kTextSize) / 2 + 3;
    if (view.x(value) - half < end) continue;
    end = view.x(value) + half;
    ticks.push_back({value, text});
  }
  return ticks;
}

/// Turns categories that are longer than their room, and returns the room below the axis.
double place_categories(PlotView& view) {
  const std::vector<std::string>& names = view.chart->x.categories;
  const auto every = static_cast<size_t>(std::ceil(kUpright / view.slot()));
  const bool fit = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return text_width(view.font, shortened(name, kLongestCategory), kTextSize) <= view.slot() - 6;
  });
  for (size_t i = 0; i < names.size(); i += fit ? 1 : every) {
    view.x_ticks.push_back({static_cast<double>(i), shortened(names[i], kLongestCategory)});
  }
  if (fit) return kTextHeight + 4;
  view.turned = view.slot() >= kAslant ? 35 : 90;
  return view.turned == 90 ? widest(view, view.x_ticks) + 12 : widest(view, view.x_ticks) * 0.58 + 12;
}

/// Places the names of marks on levels, so that none lies over another.
void place_marks(PlotView& view) {
  std::vector<double> ends;
  for (const Mark& mark : view.chart->marks) {
    const double x = view.x(mark.x);
    if (!view.x.takes(mark.x) || x < view.left - 1 || x > view.left + view.w + 1) continue;
    const double room = text_width(view.font, mark.label, kMarkSize) + 6;
    const bool leftwards = x + room > view.width;
    const double from = leftwards ? x - room : x;
    size_t level = 0;
    while (level < ends.size() && ends[level] > from) ++level;
    const bool named = level < kMarkLevels && from >= 0;
    if (named) {
      ends.resize(std::max(ends.size(), level + 1));
      ends[level] = from + room;
    }
    view.marks.push_back({x, named ? level : 0, named ? mark.label : "", leftwards});
  }
  view.mark_levels = ends.size();
}

/// Places the x axis, and returns the room below it.
double place_x(PlotView& view) {
  const Chart& chart = *view.chart;
  view.x = Scale(x_domain(view), view.left, view.left + view.w, chart.x.log && !view.discrete());
  double room = kTextHeight + 4;
  if (!chart.x.categories.empty()) {
    room = place_categories(view);
  } else {
    if (chart.x.at_values) view.x_ticks = value_ticks(view);
    const std::set<double> values = x_values(view);
    const bool whole = std::all_of(values.begin(), values.end(), [](double x) { return x == std::floor(x); });
    if (view.x_ticks.empty()) view.x_ticks = ticks_of(chart.x, view.x.domain(), view.w, 40, whole);
  }
  return room + (chart.x.label.empty() ? 0 : kTextHeight + 2);
}

}  // namespace

bool PlotView::discrete() const {
  return chart->kind == Kind::bar || chart->kind == Kind::stack || !chart->x.categories.empty();
}

double PlotView::slot() const { return w / std::max<double>(1, static_cast<double>(chart->x.categories.size())); }

double PlotView::row_place(size_t row) const {
  return top + (static_cast<double>(row) + 0.5) * h / std::max<double>(1, static_cast<double>(chart->rows.size()));
}

std::string page_color(const std::string& name) {
  const std::string_view css = asset("page.css");
  const std::string begin = "--" + name + ": light-dark(";
  const size_t place = css.find(begin);
  return place == std::string_view::npos ? "#000000" : std::string(css.substr(place + begin.size(), 7));
}

PlotView view_of(const Chart& chart, const Look& look, const Font& font) {
  PlotView view;
  view.chart = &chart;
  view.font = font;
  view.series = series_of(chart);
  view.width = look.width_mm * kPointsPerMillimetre;
  if (look.title) view.title = lines_of(font, chart.title, kTitleSize, view.width);
  double top = static_cast<double>(view.title.size()) * (kTitleSize + 3) + (view.title.empty() ? 2 : 5);
  top += place_legend(view, top);
  const bool timeline = chart.kind == Kind::timeline;
  view.second = std::any_of(view.series.begin(), view.series.end(), [](const auto& s) { return s.data->second_axis; });
  const bool labels = (!chart.y.label.empty() && !timeline) || view.second;
  view.h = timeline ? std::max(40.0, static_cast<double>(chart.rows.size()) * kRowHeight)
                    : std::clamp(view.width * 0.5, 110.0, 260.0);
  Range domain{0, 1};
  double left = 8;
  if (timeline) {
    for (const std::string& row : chart.rows) left = std::max(left, text_width(font, row, kTextSize));
    left = std::min(left, view.width * 0.35);
  } else {
    domain = y_domain(view, chart.y, false);
    view.y_ticks = ticks_of(chart.y, domain, view.h, 22);
    left = std::max(left, widest(view, view.y_ticks));
  }
  const Range second = view.second ? y_domain(view, chart.y2, true) : Range{0, 1};
  if (view.second) view.y2_ticks = ticks_of(chart.y2, second, view.h, 22);
  view.left = left + 8;
  view.w = std::max(20.0, view.width - view.left - (view.second ? widest(view, view.y2_ticks) + 10 : 12));
  const double below = place_x(view);
  place_marks(view);
  view.top = top + (labels ? kTextHeight + 4 : 4) + static_cast<double>(view.mark_levels) * kTextHeight;
  view.y = Scale(domain, view.top + view.h, view.top, chart.y.log);
  view.y2 = Scale(second, view.top + view.h, view.top, chart.y2.log);
  view.height = view.top + view.h + below + 4;
  return view;
}

}  // namespace lockstep::chart
