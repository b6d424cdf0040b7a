// Plots of the fields of runs: lines, bars, speed-up.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "records/statistics.h"
#include "report/figures.h"
#include "report/judgement.h"
#include "report/plots.h"

namespace lockstep::report {
namespace {

using chart::Chart;
using chart::Series;
using lab::PlotKind;
using lab::PlotSpec;
using records::known;

/// Colour of reported figures that belong to no series.
constexpr int kReportedColor = 7;

/// The positions on the x axis: numbers, or the indices of categories.
class Places {
 public:
  Places(const Observations& observations, const std::string& field, bool categories) {
    std::vector<Case> cases = cases_by(observations, {field});
    sort_by_number(cases, 0);
    numbers_ = !categories;
    for (const Case& each : cases) {
      names_.push_back(each.key.front());
      numbers_ = numbers_ && known(number_of(each.key.front()));
    }
  }
  [[nodiscard]] bool numbers() const { return numbers_; }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] double at(const std::string& value) const {
    if (numbers_) return number_of(value);
    for (size_t i = 0; i < names_.size(); ++i) {
      if (same_value(names_[i], value)) return static_cast<double>(i);
    }
    return records::kUnknown;
  }

 private:
  std::vector<std::string> names_;
  bool numbers_ = true;
};

/// Adds a mean with its interval, which is the mean itself without repeats.
void add_point(double place, const Case& point, const std::string& field, Series& series) {
  const statistics::Estimate figure = estimate_of(point.members, field);
  const auto [low, high] = drawn_interval(figure, field);
  series.x.push_back(place);
  series.y.push_back(figure.value);
  series.low.push_back(low);
  series.high.push_back(high);
}

/// Returns the means of cases along x, with their intervals if any case has repeats.
Series series_over(const std::vector<Case>& along, const std::string& y, const Places& places) {
  Series series;
  bool spread = false;
  for (const Case& point : along) {
    const double place = places.at(point.key.front());
    if (repeats_of(point.members, y).empty() || !known(place)) continue;
    add_point(place, point, y, series);
    spread = spread || series.high.back() > series.low.back();
  }
  if (!spread) {
    series.low.clear();
    series.high.clear();
  }
  return series;
}

std::string name_of(const PlotSpec& spec, const Case& each, const std::string& field, size_t fields) {
  const std::string which = spec.series.empty() ? "" : series_name(spec.series, each, false);
  if (fields < 2) return which.empty() ? field_title(field) : which;
  return which.empty() ? field_title(field) : which + ", " + field_title(field);
}

/// Adds the study's figures of the same quantity, dashed and in the colour of the measured series.
void add_reported(const PlotSpec& spec, const Case& each, const lab::Filter& facet, const Reported& reported,
                  const std::string& field, const Places& places, Chart& chart) {
  if (!reported.has(field) || !reported.has(spec.x)) return;
  Fields fields = spec.series;
  Key key = each.key;
  if (spec.series.empty()) key.clear();
  for (const auto& [name, values] : facet.where) {
    fields.push_back(name);
    key.push_back(values.front());
  }
  std::map<double, std::vector<double>> points;
  for (size_t row = 0; row < reported.size(); ++row) {
    bool fits = true;
    for (size_t i = 0; i < fields.size(); ++i) {
      fits = fits && (!reported.has(fields[i]) || same_value(reported.text(row, fields[i]), key[i]));
    }
    const double place = places.at(reported.text(row, spec.x));
    const double value = reported.number(row, field);
    if (fits && known(place) && known(value)) points[place].push_back(value);
  }
  if (points.empty()) return;
  const bool of_series =
      std::any_of(spec.series.begin(), spec.series.end(), [&](const auto& f) { return reported.has(f); });
  const std::string name = of_series || spec.series.empty() ? chart.series.back().name + ", reported" : "reported";
  if (std::any_of(chart.series.begin(), chart.series.end(), [&](const Series& s) { return s.name == name; })) return;
  Series series{.name = name, .x = {}, .y = {}};
  for (const auto& [place, values] : points) {
    series.x.push_back(place);
    series.y.push_back(records::mean(values));
  }
  series.dashed = true;
  series.second_axis = chart.series.back().second_axis;
  series.color = name == "reported" ? kReportedColor : chart.series.back().color;
  chart.series.push_back(std::move(series));
}

/// Explains what the means and intervals of a chart are over.
std::string band_text(const Chart& chart, const std::vector<Case>& points) {
  const std::string pooled = pooled_text(points);
  const bool band = std::any_of(chart.series.begin(), chart.series.end(), [](const Series& s) {
    for (size_t i = 0; i < s.low.size(); ++i) {
      if (s.high[i] > s.low[i]) return true;
    }
    return false;
  });
  if (pooled.empty()) return band ? "Figures are means over the repeats, with 95 % intervals." : "";
  return fmt::format("Figures are means over {}{}.", pooled, band ? ", with 95 % intervals over the repeats" : "");
}

/// Returns the smallest and largest measured or reported value on one axis; NaN if there is none.
std::pair<double, double> range_of(const Chart& chart, bool second_axis, bool reported) {
  std::pair range{records::kUnknown, records::kUnknown};
  for (const Series& series : chart.series) {
    if (series.second_axis != second_axis || series.dashed != reported) continue;
    for (const double value : records::known_of(series.y))
      range = {std::fmin(range.first, value), std::fmax(range.second, value)};
  }
  return range;
}

/// Makes room for reported figures. They can be so far from the measured ones that either becomes a line at the edge:
/// the axis is then logarithmic. Bars cannot have such an axis; a note below names the figures instead.
void fit_reported(Chart& chart, lab::Unit unit, lab::Unit second_unit, std::vector<std::string>& notes) {
  constexpr double kFar = 20;
  for (const bool second : {false, true}) {
    const auto [low, high] = range_of(chart, second, false);
    const auto [reported_low, reported_high] = range_of(chart, second, true);
    if (!(reported_high > kFar * high) && !(high > kFar * reported_high)) continue;
    chart::Axis& axis = second ? chart.y2 : chart.y;
    if (chart.kind == chart::Kind::line && low > 0 && reported_low > 0) {
      axis.log = true;
      continue;
    }
    std::erase_if(chart.series, [&](const Series& s) { return s.dashed && s.second_axis == second; });
    const auto text = [&](double value) { return figure_text(value, second ? second_unit : unit); };
    notes.push_back(fmt::format("The reported figures, {} to {} of {}, are too far from the measured ones to be drawn.",
                                text(reported_low), text(reported_high), axis.label));
  }
}

/// Draws several fields; those with the unit of the first share its axis.
Chart field_chart(const PlotSpec& spec, const Fields& y, const Observations& observations, const Reported& reported,
                  const lab::Filter& facet) {
  const bool bars = spec.kind == PlotKind::bars;
  const Places places(observations, spec.x, bars);
  Chart chart{.id = "",
              .title = "",
              .text = "",
              .kind = bars ? chart::Kind::bar : chart::Kind::line,
              .x = axis_of(spec.x),
              .y = axis_of(y.front()),
              .y2 = {},
              .series = {}};
  chart.x.log = spec.log_x && places.numbers();
  chart.x.at_values = true;
  chart.y.log = spec.log_y;
  if (!places.numbers()) chart.x.categories = places.names();
  if (!spec.y2.empty()) chart.y2 = axis_of(spec.y2.front());
  int color = 0;
  const std::vector<Case> cases =
      spec.series.empty() ? std::vector<Case>{{{}, observations}} : series_cases(spec.series, observations);
  const size_t fields = y.size() + spec.y2.size();
  std::vector<Case> points;
  for (const Case& each : cases) {
    std::vector<Case> along = cases_by(each.members, {spec.x});
    sort_by_number(along, 0);
    points.insert(points.end(), along.begin(), along.end());
    for (size_t i = 0; i < fields; ++i) {
      const bool second = i >= y.size();
      const std::string& field = second ? spec.y2[i - y.size()] : y[i];
      Series series = series_over(along, field, places);
      if (series.x.empty()) continue;
      series.name = name_of(spec, each, field, fields);
      series.second_axis = second;
      series.color = color++;
      chart.series.push_back(std::move(series));
      add_reported(spec, each, facet, reported, field, places, chart);
    }
  }
  std::stable_partition(chart.series.begin(), chart.series.end(), [](const Series& s) { return s.name != "reported"; });
  chart.text = band_text(chart, points);
  return chart;
}

/// The trainers of a case's runs, if all runs have the same number; x is this number unless another field is chosen.
struct SpeedPoints {
  std::map<double, Case> at;
  std::map<double, double> ideal;
};

SpeedPoints speed_points(const PlotSpec& spec, const Case& each, const std::string& field) {
  SpeedPoints points;
  for (const Observation& member : each.members) {
    const auto count = static_cast<double>(trainers(*member.run));
    const double at = spec.x.empty() ? count : member.number(spec.x);
    if (!known(at) || !known(member.number(field))) continue;
    points.at[at].members.push_back(member);
    points.ideal[at] = field == "speed_up" ? count : 1;
  }
  return points;
}

/// Draws a field over trainers; every series starts at one trainer.
Series speed_series(const SpeedPoints& points, const std::string& field) {
  Series series;
  if (!points.at.contains(1)) {
    for (auto* values : {&series.x, &series.y, &series.low, &series.high}) values->push_back(1);
  }
  for (const auto& [at, members] : points.at) add_point(at, members, field, series);
  return series;
}

Series ideal_line(const std::map<double, double>& ideal) {
  Series line{.name = "ideal", .x = {}, .y = {}};
  for (const auto& [at, value] : ideal) {
    line.x.push_back(at);
    line.y.push_back(value);
  }
  line.dashed = true;
  line.color = kReportedColor;
  return line;
}

Chart speed_chart(const PlotSpec& spec, const Observations& observations, const std::string& field) {
  Chart chart{.id = "",
              .title = "",
              .text = "",
              .x = {spec.x.empty() ? "trainers" : field_title(spec.x), ""},
              .y = axis_of(field),
              .y2 = {},
              .series = {}};
  std::map<double, double> ideal{{1, 1}};
  std::vector<Case> all;
  for (const Case& each : series_cases(spec.series, observations)) {
    const SpeedPoints points = speed_points(spec, each, field);
    const bool alone = points.at.empty() || (points.at.size() == 1 && points.at.begin()->first == 1);
    if (alone) continue;
    ideal.insert(points.ideal.begin(), points.ideal.end());
    for (const auto& [at, members] : points.at) all.push_back(members);
    chart.series.push_back(speed_series(points, field));
    chart.series.back().name = series_name(spec.series, each, several_groups(observations));
  }
  if (chart.series.empty()) return chart;
  chart.x.at_values = true;
  chart.text = band_text(chart, all);
  chart.series.push_back(ideal_line(ideal));
  chart.y.shows = {0};
  return chart;
}

}  // namespace

void add_field_charts(const PlotSpec& spec, const Observations& observations, const Reported& reported,
                      const lab::Filter& facet, Plot& plot) {
  if (spec.kind == PlotKind::speed_up) {
    for (const std::string field : {"speed_up", "efficiency"}) {
      Chart chart = speed_chart(spec, observations, field);
      chart.title = field_title(field);
      if (!chart.series.empty()) plot.charts.push_back(std::move(chart));
    }
    if (plot.charts.empty()) plot.notes.emplace_back("There is no run with one trainer to compare with.");
    return;
  }
  std::vector<Fields> axes;  // fields of one unit share an axis; others get their own chart
  for (const std::string& field : spec.y) {
    const auto found =
        std::find_if(axes.begin(), axes.end(), [&](const Fields& f) { return unit_of(f[0]) == unit_of(field); });
    if (found == axes.end()) {
      axes.push_back({field});
    } else {
      found->push_back(field);
    }
  }
  for (const Fields& fields : axes) {
    Chart chart = field_chart(spec, fields, observations, reported, facet);
    if (chart.series.empty()) {
      plot.notes.push_back(fmt::format("No run recorded {}.", field_title(fields.front())));
      continue;
    }
    fit_reported(chart, unit_of(fields.front()), spec.y2.empty() ? lab::Unit::none : unit_of(spec.y2.front()),
                 plot.notes);
    if (axes.size() > 1) chart.title = field_title(fields.front());
    plot.charts.push_back(std::move(chart));
  }
}

}  // namespace lockstep::report
