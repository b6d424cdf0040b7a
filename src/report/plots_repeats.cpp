// Plots of data that cannot be averaged over repeats: usage over time and timelines. One repeat is drawn; the reader
// can choose among the others.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "chart/columns.h"
#include "chart/run_charts.h"
#include "records/statistics.h"
#include "report/plots.h"

namespace lockstep::report {
namespace {

using chart::Chart;
using chart::Choice;
using chart::Series;
using lab::PlotSpec;

// Limits for the repeats to choose from, so that a page stays small.
constexpr size_t kMostRepeats = 10;
constexpr size_t kPointsOfOthers = 150;       ///< per series
constexpr size_t kMostSeries = 8;             ///< of a usage plot; with more, each run has a panel of its own
constexpr size_t kMostPointsOfPlot = 40'000;  ///< about 600 kB

std::string repeat_name(int repeat) { return fmt::format("repeat {}", repeat); }

/// Returns the repeats: first the one of which most cases have a folder, then the others in order.
std::vector<int> repeats_of(const std::vector<Case>& cases) {
  std::map<int, std::set<const Case*>> having;
  for (const Case& each : cases) {
    for (const Observation& member : each.members) {
      std::set<const Case*>& of = having[member.run->plan.repeat];
      std::error_code ignored;
      if (std::filesystem::exists(member.run->folder, ignored)) of.insert(&each);
    }
  }
  std::vector<int> repeats;
  for (const auto& [repeat, of] : having) repeats.push_back(repeat);
  const auto first = std::max_element(repeats.begin(), repeats.end(),
                                      [&](int a, int b) { return having[a].size() < having[b].size(); });
  if (first != repeats.end()) std::rotate(repeats.begin(), first, first + 1);
  return repeats;
}

/// A case and its run of one repeat.
struct Drawn {
  const Case* of = nullptr;
  ReadRun read;
};

std::vector<Drawn> drawn_of(const std::vector<Case>& cases, int repeat, RunFolders& folders, Plot& plot) {
  std::vector<Drawn> drawn;
  for (const Case& each : cases) {
    const auto member = std::find_if(each.members.begin(), each.members.end(),
                                     [&](const Observation& m) { return m.run->plan.repeat == repeat; });
    if (member == each.members.end()) continue;
    for (const ReadRun& read : read_runs({*member}, folders, plot)) drawn.push_back({&each, read});
  }
  return drawn;
}

size_t points_of_choices(const Plot& plot) {
  size_t points = 0;
  for (const Chart& chart : plot.charts) {
    for (const Choice& choice : chart.choices) {
      points += choice.spans.size();
      for (const Series& series : choice.series) points += series.x.size();
    }
  }
  return points;
}

/// Makes a choice for a chart from the data of another repeat.
Choice choice_of(Chart chart, int repeat) {
  Choice choice{repeat_name(repeat), std::move(chart.series), std::move(chart.marks), std::move(chart.rows),
                std::move(chart.spans)};
  for (Series& series : choice.series) {
    records::Curve points = records::downsampled(series.x, series.y, kPointsOfOthers);
    series.x = std::move(points.x);
    series.y = std::move(points.y);
  }
  return choice;
}

bool has_data(const Chart& chart) {
  return chart.kind == chart::Kind::timeline ? !chart.spans.empty() : !chart.series.empty();
}

/// Adds the charts of a repeat: as a new chart, or as a choice of an existing one. Returns the points of the choices.
size_t add_repeat(std::vector<Chart>&& made, int repeat, bool several, std::vector<Chart>& charts) {
  size_t points = 0;
  if (charts.size() < made.size()) charts.resize(made.size());
  for (size_t k = 0; k < made.size(); ++k) {
    if (!has_data(made[k])) continue;
    if (!has_data(charts[k])) {
      charts[k] = std::move(made[k]);
      if (several) charts[k].choice = repeat_name(repeat);
      continue;
    }
    charts[k].choices.push_back(choice_of(std::move(made[k]), repeat));
    for (const Series& series : charts[k].choices.back().series) points += series.x.size();
  }
  return points;
}

/// Adds the charts that `make` returns for the first repeat with data, with those of the other repeats as choices.
/// `make` returns them in the same order each time, some perhaps without data, or none if the folder is gone.
template <class Make>
void add_with_choices(const std::vector<Case>& cases, const Make& make, Plot& plot) {
  const std::vector<int> repeats = repeats_of(cases);
  if (repeats.empty()) return;
  const bool several = repeats.size() > 1 || repeats.front() > 1;
  std::vector<Chart> charts;
  size_t points = points_of_choices(plot);
  size_t offered = 0;
  Plot of_first;  // its notes, until a chart is drawn; missing folders of other repeats are not noted
  bool drawn = false;
  for (; offered < repeats.size() && offered < kMostRepeats && (!drawn || points < kMostPointsOfPlot); ++offered) {
    Plot notes;
    std::vector<Chart> made = make(repeats[offered], notes);
    const bool first = !drawn && std::any_of(made.begin(), made.end(), has_data);
    if (first || offered == 0) of_first = std::move(notes);
    drawn = drawn || first;
    points += add_repeat(std::move(made), repeats[offered], several, charts);
  }
  plot.notes.insert(plot.notes.end(), of_first.notes.begin(), of_first.notes.end());
  if (offered < repeats.size()) {
    plot.notes.push_back(fmt::format("Of {} repeats, {} can be shown here.", repeats.size(), offered));
  }
  for (Chart& chart : charts) {
    if (has_data(chart)) plot.charts.push_back(std::move(chart));
  }
}

/// Groups columns by unit: those of one unit share a chart.
std::vector<std::vector<std::string>> columns_by_unit(const std::vector<std::string>& columns) {
  std::vector<std::vector<std::string>> axes;
  for (const std::string& column : columns) {
    const auto found = std::find_if(axes.begin(), axes.end(), [&](const auto& some) {
      return chart::column_text(some.front()).unit == chart::column_text(column).unit;
    });
    found == axes.end() ? axes.push_back({column}) : found->push_back(column);
  }
  return axes;
}

/// Names an axis for several columns of a unit.
std::string axis_words(const std::string& unit) {
  if (unit == "percent") return "load";
  if (unit == "B") return "bytes";
  return unit == "B/s" ? "bytes per second" : "";
}

/// `several`: the plot has other charts, so that these need names.
Chart usage_chart(const PlotSpec& spec, const std::vector<std::string>& columns, const std::vector<Drawn>& runs,
                  bool several, bool groups) {
  Chart chart{
      .id = "", .title = "", .text = "", .x = chart::axis_of(chart::Over::seconds), .y = {}, .y2 = {}, .series = {}};
  chart.y = {
      columns.size() == 1 ? chart::column_text(columns[0]).title : axis_words(chart::column_text(columns[0]).unit),
      chart::column_text(columns[0]).unit, spec.log_y};
  for (const Drawn& drawn : runs) {
    for (const std::string& column : columns) {
      const Chart one = chart::usage(*drawn.read.record, column, spec.roles);
      for (Series series : one.series) {
        const std::string run = several ? series_name(spec.series, *drawn.of, groups) : "";
        const bool alone = several && one.series.size() == 1 && spec.roles.size() == 1;
        series.name =
            joined(joined(run, alone ? "" : series.name), columns.size() > 1 ? chart::column_text(column).title : "");
        chart.series.push_back(std::move(series));
      }
      if (runs.size() == 1) chart.marks = one.marks;
    }
  }
  return chart;
}

/// Returns whether a chart of all cases would have too many series to tell apart.
bool is_crowded(const PlotSpec& spec, const std::vector<Case>& cases, const std::vector<std::vector<std::string>>& axes,
                RunFolders& folders) {
  const std::vector<int> repeats = repeats_of(cases);
  if (cases.size() < 2 || repeats.empty()) return false;
  Plot ignored;
  const std::vector<Drawn> runs = drawn_of(cases, repeats.front(), folders, ignored);
  return std::any_of(axes.begin(), axes.end(), [&](const auto& columns) {
    return usage_chart(spec, columns, runs, true, false).series.size() > kMostSeries;
  });
}

}  // namespace

void add_usage(const PlotSpec& spec, const Observations& members, RunFolders& folders, Plot& plot) {
  const std::vector<Case> cases = series_cases(spec.series, members);
  const std::vector<std::vector<std::string>> axes = columns_by_unit(spec.y);
  const bool groups = several_groups(members);
  const auto add = [&](const std::vector<Case>& some, const std::string& panel) {
    const auto make = [&](int repeat, Plot& into) {
      const std::vector<Drawn> runs = drawn_of(some, repeat, folders, into);
      std::vector<Chart> charts;
      for (const std::vector<std::string>& columns : axes) {
        charts.push_back(usage_chart(spec, columns, runs, some.size() > 1, groups));
        charts.back().title = joined(panel, axes.size() > 1 ? charts.back().y.label : "");
        if (charts.back().series.empty() && !runs.empty()) {
          into.notes.push_back(fmt::format("No monitor recorded {}.", columns.front()));
        }
      }
      return charts;
    };
    add_with_choices(some, make, plot);
  };
  plot.panels = is_crowded(spec, cases, axes, folders);
  if (!plot.panels) return add(cases, "");
  for (const Case& each : cases) add({each}, series_name(spec.series, each, groups));
}

void add_timelines(const PlotSpec& spec, const Observations& members, RunFolders& folders, Plot& plot) {
  const std::vector<Case> cases = series_cases(spec.series, members);
  for (const Case& each : cases) {
    const auto make = [&](int repeat, Plot& into) {
      std::vector<Chart> charts;
      for (const Drawn& drawn : drawn_of({each}, repeat, folders, into)) {
        charts.push_back(chart::timeline(*drawn.read.record));
        charts.back().title = cases.size() > 1 ? title_of(*drawn.read.run, several_groups(members)) : "";
        if (charts.back().spans.empty()) {
          into.notes.push_back(fmt::format("{} recorded no times.", drawn.read.run->plan.key));
        }
      }
      return charts;
    };
    add_with_choices({each}, make, plot);
  }
}

}  // namespace lockstep::report
