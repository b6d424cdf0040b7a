#include "report/plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "chart/columns.h"
#include "chart/run_charts.h"
#include "records/statistics.h"
#include "report/figures.h"

namespace lockstep::report {
namespace {

using lab::PlotKind;

/// Upper limit; nobody reads a page with more.
constexpr size_t kMostCharts = 24;

bool from_folders(PlotKind kind) {
  return kind == PlotKind::curves || kind == PlotKind::usage || kind == PlotKind::phases || kind == PlotKind::timeline;
}

/// An axis that is shared shows no chart in less than this part of it.
constexpr double kLeastPart = 0.05;

using Range = std::pair<double, double>;

void widen(Range& range, const std::vector<double>& values) {
  for (const double value : values) {
    if (std::isfinite(value)) range = {std::fmin(range.first, value), std::fmax(range.second, value)};
  }
}

/// The values of a chart and its other repeats on the first axis, and the ends of their intervals.
struct Reach {
  Range values{INFINITY, -INFINITY};
  Range bands{INFINITY, -INFINITY};
};

Reach reach_of(const chart::Chart& chart) {
  Reach reach;
  const auto take = [&](const std::vector<chart::Series>& list) {
    for (const chart::Series& series : list) {
      if (series.second_axis) continue;
      widen(reach.values, series.y);
      widen(reach.bands, series.low);
      widen(reach.bands, series.high);
    }
  };
  take(chart.series);
  for (const chart::Choice& choice : chart.choices) take(choice.series);
  return reach;
}

bool of_one_axis(const chart::Chart& a, const chart::Chart& b) {
  return a.y.label == b.y.label && a.y.unit == b.y.unit && a.kind == b.kind;
}

/// Gives all facets and repeats of a quantity the same y axis, so that they can be compared; not a chart that would be
/// flat on it.
void share_axes(std::vector<chart::Chart>& charts, bool facets) {
  for (chart::Chart& chart : charts) {
    if (chart.kind == chart::Kind::stack || (!facets && chart.choices.empty())) continue;
    Reach all = reach_of(chart);
    const double own = all.values.second;
    for (const chart::Chart& other : charts) {
      const Reach reach = reach_of(other);
      const double least = std::min(own, reach.values.second);
      const bool flat = least > 0 && least < kLeastPart * std::max(own, reach.values.second);
      if (!facets || flat || !of_one_axis(chart, other)) continue;
      widen(all.values, {reach.values.first, reach.values.second});
      widen(all.bands, {reach.bands.first, reach.bands.second});
    }
    if (!(all.values.first <= all.values.second)) continue;
    const Range bands =
        chart.kind == chart::Kind::line ? chart::drawn_band(all.values, all.bands, chart.y.log) : all.bands;
    widen(all.values, {bands.first, bands.second});
    chart.y.shows = {all.values.first, all.values.second};
  }
}

/// Returns the last moment of a chart over time and its other repeats; 0 if it is over something else.
double end_of(const chart::Chart& chart) {
  double last = 0;
  const auto take = [&](const auto& part) {
    for (const chart::Span& span : part.spans) last = std::max(last, span.to);
    for (const chart::Mark& mark : part.marks) last = std::max(last, mark.x);
    for (const chart::Series& series : part.series) {
      for (const double x : series.x) last = std::max(last, records::known(x) ? x : 0);
    }
  };
  const bool over_time =
      chart.x.unit == "s" && (chart.kind == chart::Kind::timeline || chart.kind == chart::Kind::line);
  if (!over_time || chart.x.log || chart.x.at_values) return 0;
  take(chart);
  for (const chart::Choice& choice : chart.choices) take(choice);
  return last;
}

/// Gives all charts over time of a plot, and all repeats, the same time axis, so that they can be compared; not a chart
/// that would be a point on it.
void share_times(std::vector<chart::Chart>& charts) {
  for (chart::Chart& chart : charts) {
    const double own = end_of(chart);
    double last = own;
    for (const chart::Chart& other : charts) {
      const double end = end_of(other);
      if (std::min(own, end) >= kLeastPart * std::max(own, end)) last = std::max(last, end);
    }
    const bool alone = charts.size() == 1 && chart.choices.empty() && chart.kind == chart::Kind::line;
    if (last > 0 && !alone) chart.x.shows = {0, last};
  }
}

/// Joins titles: "accuracy, loss and time".
std::string listed(const std::vector<std::string>& titles) {
  std::string text;
  for (size_t i = 0; i < titles.size(); ++i) {
    text += (i == 0 ? "" : i + 1 < titles.size() ? ", " : " and ") + titles[i];
  }
  return text;
}

/// Begins a title in lower case, unless with an abbreviation: "CPU of the node".
std::string within_sentence(std::string title) {
  const auto is_upper = [&](size_t place) {
    return place < title.size() && title[place] >= 'A' && title[place] <= 'Z';
  };
  if (is_upper(0) && !is_upper(1)) title[0] = static_cast<char>(title[0] - 'A' + 'a');
  return title;
}

std::string what_it_shows(const lab::PlotSpec& spec) {
  std::vector<std::string> titles;
  for (const auto* fields : {&spec.y, &spec.y2}) {
    for (const std::string& field : *fields) {
      const std::string each = spec.kind == PlotKind::curves  ? chart::curve_axis(field).label
                               : spec.kind == PlotKind::usage ? chart::column_text(field).title
                                                              : field_title(field);
      titles.push_back(titles.empty() ? each : within_sentence(each));
    }
  }
  switch (spec.kind) {
    case PlotKind::phases:
      return "Where the time of a step goes";
    case PlotKind::timeline:
      return "When each role worked";
    case PlotKind::speed_up:
      return "Speed-up and efficiency";
    case PlotKind::usage:
      return listed(titles);
    case PlotKind::curves: {
      const std::string label = chart::axis_of(chart::over_of(spec.x)).label;
      return listed(titles) + " over " + label + (label == "step" || label == "epoch" ? "s" : "");
    }
    case PlotKind::lines:
    case PlotKind::bars:
      break;
  }
  return listed(titles) + " by " + axis_of(spec.x).label;
}

/// Returns whether the experiment has more than one group of runs.
bool has_groups(const Material& material) {
  const auto& runs = material.results().runs;
  return std::any_of(runs.begin(), runs.end(),
                     [&](const lab::RunResult& run) { return run.plan.group != runs.front().plan.group; });
}

/// Names a facet; groups by their titles.
std::string facet_name(const Material& material, const Fields& fields, Key key) {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i] == "group") key[i] = material.group_title(key[i]);
  }
  return describe(fields, key);
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// Returns whether the plot's title already names this chart and no other.
bool names_alone(std::string title, const std::vector<chart::Chart>& charts, size_t begin, const std::string& name) {
  title = lower(title);
  for (size_t i = begin; i < charts.size(); ++i) {
    const bool named = title.find(lower(charts[i].title)) != std::string::npos;
    if (named != (charts[i].title == name)) return false;
  }
  return true;
}

void name_charts(const lab::PlotSpec& spec, const std::string& title, const std::string& id, const std::string& facet,
                 size_t begin, Plot& plot) {
  const std::vector<chart::Chart> unnamed = plot.charts;
  for (size_t i = begin; i < plot.charts.size(); ++i) {
    chart::Chart& chart = plot.charts[i];
    // A plot without a title of its own is named by all its charts: each of several has its own name alone.
    const bool alone = spec.title.empty() && plot.charts.size() > begin + 1 && !chart.title.empty();
    std::string name = alone ? capital(chart.title) : title;
    if (!facet.empty()) name += ": " + facet;
    if (!alone && !chart.title.empty() && !names_alone(title, unnamed, begin, chart.title))
      name += (facet.empty() ? ": " : ", ") + chart.title;
    chart.title = name;
    chart.id = fmt::format("{}-{}", id, i + 1);
    if (i == 0 && !spec.text.empty()) chart.text = sentence(spec.text) + (chart.text.empty() ? "" : " " + chart.text);
  }
}

void add_facet(const lab::PlotSpec& spec, const Case& facet, const Reported& reported, RunFolders& folders,
               Plot& plot) {
  if (from_folders(spec.kind)) {
    add_run_charts(spec, facet.members, folders, plot);
    return;
  }
  lab::Filter filter;
  for (size_t i = 0; i < spec.facets.size(); ++i) filter.where.push_back({spec.facets[i], {facet.key[i]}});
  add_field_charts(spec, facet.members, reported, filter, plot);
}

}  // namespace

std::string plot_title(const Material& material, const lab::PlotSpec& spec) {
  if (!spec.title.empty()) return spec.title;
  const std::string title = capital(what_it_shows(spec));
  const bool of_group = spec.filter.groups.size() == 1 && has_groups(material);
  return of_group ? fmt::format("{} ({})", title, material.group_title(spec.filter.groups.front())) : title;
}

std::vector<Case> series_cases(const Fields& fields, const Observations& observations) {
  if (fields.empty()) return variations(observations);
  std::vector<Case> cases = cases_by(observations, fields);
  for (size_t place = fields.size(); place-- > 0;) sort_by_number(cases, place);
  return cases;
}

std::string series_name(const Fields& fields, const Case& each, bool with_group) {
  if (fields.empty()) return title_of(*each.members.front().run, with_group);
  const std::string name = describe(fields, each.key);
  return name.empty() ? "without " + field_title(fields.front()) : name;
}

Plot plot_of(const Material& material, RunFolders& folders, const lab::PlotSpec& spec, const std::string& id) {
  Plot plot;
  const lab::Per named = spec.per == lab::Per::run && lab::of_part(spec.x) ? lab::Per::worker : spec.per;
  const Observations all = material.observations(spec.filter, from_folders(spec.kind) ? lab::Per::run : named);
  if (all.empty()) {
    plot.notes.push_back(material.missing(spec.filter) == 0 ? "This experiment has no run for it."
                                                            : material.missing_text(spec.filter));
    return plot;
  }
  const Reported reported(lab::value_of(material.results().experiment.reported, spec.reported), spec.reported_columns,
                          spec.reported_where);
  const std::vector<Case> facets = cases_by(all, spec.facets);
  size_t left_out = 0;
  for (const Case& facet : facets) {
    if (plot.charts.size() >= kMostCharts) {
      ++left_out;
      continue;
    }
    const size_t begin = plot.charts.size();
    add_facet(spec, facet, reported, folders, plot);
    name_charts(spec, plot_title(material, spec), id, facet_name(material, spec.facets, facet.key), begin, plot);
  }
  if (!reported.empty() && material.results().experiment.scale == "quick")
    plot.notes.emplace_back("Reported figures are not comparable with this quick form, which trains less.");
  if (left_out > 0) plot.notes.push_back(fmt::format("{} more charts were left out.", left_out));
  share_axes(plot.charts, plot.panels || !spec.facets.empty());
  share_times(plot.charts);
  if (const std::string missing = material.missing_text(spec.filter); !missing.empty()) plot.notes.push_back(missing);
  std::sort(plot.notes.begin(), plot.notes.end());
  plot.notes.erase(std::unique(plot.notes.begin(), plot.notes.end()), plot.notes.end());
  return plot;
}

}  // namespace lockstep::report
