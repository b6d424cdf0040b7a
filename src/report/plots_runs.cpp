// Plots of data within runs, over all repeats: curves and phases. They need the runs' folders.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "chart/columns.h"
#include "chart/run_charts.h"
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
using records::Curve;
using records::known;
using records::RoleRecord;
using records::RunRecord;

constexpr size_t kGridPoints = 200;

Curve known_points(const Curve& curve) { return records::downsampled(curve.x, curve.y, curve.x.size() + 2); }

/// Returns x values where all curves have values: their own if they share them, otherwise evenly spaced ones.
std::vector<double> common_places(const std::vector<Curve>& curves) {
  const bool same = std::all_of(curves.begin(), curves.end(), [&](const Curve& c) { return c.x == curves.front().x; });
  if (same && curves.front().size() <= chart::kMostPoints) return curves.front().x;
  double low = -INFINITY;
  double high = INFINITY;
  size_t points = 2;
  for (const Curve& curve : curves) {
    low = std::max(low, curve.x.front());
    high = std::min(high, curve.x.back());
    points = std::max(points, curve.size());
  }
  if (!(high > low)) return {};
  points = std::min(points, kGridPoints);
  std::vector<double> places;
  for (size_t i = 0; i < points; ++i) {
    places.push_back(low + (high - low) * static_cast<double>(i) / static_cast<double>(points - 1));
  }
  return places;
}

/// Returns the mean of repeats, with a band of its interval at each place.
Series merged(const std::string& name, const std::string& field, std::vector<Curve> curves) {
  Series series{.name = name, .x = {}, .y = {}};
  std::erase_if(curves, [](const Curve& curve) { return curve.x.empty(); });
  if (curves.empty()) return series;
  if (curves.size() == 1) {
    Curve points = records::downsampled(curves[0].x, curves[0].y, chart::kMostPoints);
    series.x = std::move(points.x);
    series.y = std::move(points.y);
    return series;
  }
  series.x = common_places(curves);
  for (const double x : series.x) {
    std::vector<double> values;
    for (const Curve& curve : curves) values.push_back(records::value_at(curve, x));
    statistics::Repeats repeats;
    for (const double value : values) repeats.emplace(static_cast<int>(repeats.size()), value);
    const statistics::Estimate mean = statistics::mean_of(repeats);
    const auto [low, high] = drawn_interval(mean, field);
    series.y.push_back(mean.value);
    series.low.push_back(low);
    series.high.push_back(high);
  }
  return series;
}

void add_worker_curves(const PlotSpec& spec, const std::string& y, const std::string& name,
                       const std::vector<ReadRun>& runs, Chart& chart) {
  std::vector<std::pair<std::string, std::vector<Curve>>> by_role;
  for (const ReadRun& read : runs) {
    for (const RoleRecord& role : read.record->roles) {
      if (!role.trains()) continue;
      auto found =
          std::find_if(by_role.begin(), by_role.end(), [&](const auto& pair) { return pair.first == role.role; });
      if (found == by_role.end()) found = by_role.insert(by_role.end(), {role.role, {}});
      found->second.push_back(known_points(chart::curve(*read.record, role, y, chart::over_of(spec.x))));
    }
  }
  for (auto& [role, curves] : by_role) {
    Series series = merged(joined(name, role), y, std::move(curves));
    if (!series.x.empty()) chart.series.push_back(std::move(series));
  }
}

void add_curves(const PlotSpec& spec, const Observations& members, RunFolders& folders, Plot& plot) {
  for (const std::string& y : spec.y) {
    Chart chart{.id = "",
                .title = "",
                .text = "",
                .x = chart::axis_of(chart::over_of(spec.x)),
                .y = chart::curve_axis(y),
                .y2 = {},
                .series = {}};
    chart.x.log = spec.log_x;
    chart.y.log = spec.log_y;
    chart.adjustable = y.ends_with("loss") || y.starts_with("train_");
    if (spec.y.size() > 1) chart.title = chart.y.label;
    size_t most = 0;
    const std::vector<Case> cases = series_cases(spec.series, members);
    for (const Case& each : cases) {
      const std::vector<ReadRun> runs = read_runs(each.members, folders, plot);
      most = std::max(most, runs.size());
      const std::string name = series_name(spec.series, each, several_groups(members));
      if (spec.per == lab::Per::worker) {
        add_worker_curves(spec, y, cases.size() > 1 ? name : "", runs, chart);
        continue;
      }
      std::vector<Curve> curves;
      for (const ReadRun& read : runs)
        curves.push_back(known_points(chart::curve(*read.record, y, chart::over_of(spec.x))));
      Series series = merged(name, y, std::move(curves));
      if (!series.x.empty()) chart.series.push_back(std::move(series));
    }
    if (most > 1) chart.text = fmt::format("Curves are means of up to {} runs; bands are 95 % intervals.", most);
    if (!chart.series.empty()) {
      plot.charts.push_back(std::move(chart));
    } else if (most > 0) {
      plot.notes.push_back(fmt::format("No {} was recorded.", y));
    }
  }
}

double steps_of(const RoleRecord& role) {
  for (const records::PhaseTotals& phase : role.phases) {
    if (phase.name == "forward" && phase.count > 0) return phase.count;
  }
  return records::kUnknown;
}

/// Returns the seconds per step of a phase part, as a mean over the trainers; without time outside of steps.
double seconds_of_step(const RunRecord& run, const chart::PhasePart& part, const std::string& only) {
  std::vector<double> values;
  for (const RoleRecord& role : run.roles) {
    if (!role.trains() || (!only.empty() && role.role != only)) continue;
    double seconds = 0;
    for (const std::string_view phase : part.phases) {
      if (phase != "evaluation" && phase != "checkpoint") seconds += role.phase_seconds(phase);
    }
    values.push_back(seconds / steps_of(role));
  }
  return records::mean(values);
}

struct Stack {
  std::string name;
  std::vector<ReadRun> runs;
  std::string role;  ///< empty: all trainers
};

std::vector<Stack> stacks_of(const PlotSpec& spec, const Observations& members, RunFolders& folders, Plot& plot) {
  std::vector<Stack> stacks;
  for (const Case& each : series_cases(spec.series, members)) {
    const std::string name = series_name(spec.series, each, several_groups(members));
    std::vector<ReadRun> runs = read_runs(each.members, folders, plot);
    if (runs.empty()) continue;
    if (spec.per != lab::Per::worker) {
      stacks.push_back({name, std::move(runs), ""});
      continue;
    }
    for (const RoleRecord& role : runs.front().record->roles) {
      if (role.trains()) stacks.push_back({joined(name, role.role), runs, role.role});
    }
  }
  return stacks;
}

void add_phases(const PlotSpec& spec, const Observations& members, RunFolders& folders, Plot& plot) {
  Chart chart{.id = "",
              .title = "",
              .text = "",
              .kind = chart::Kind::stack,
              .x = {},
              .y = {"Time of a step", "s"},
              .y2 = {},
              .series = {}};
  const std::vector<Stack> stacks = stacks_of(spec, members, folders, plot);
  for (const Stack& stack : stacks) chart.x.categories.push_back(stack.name);
  for (const chart::PhasePart& part : chart::phase_parts()) {
    Series series{.name = std::string(part.title), .x = {}, .y = {}};
    if (part.color == 7) series.name = "rest";
    series.color = part.color;
    for (size_t i = 0; i < stacks.size(); ++i) {
      std::vector<double> values;
      for (const ReadRun& read : stacks[i].runs) values.push_back(seconds_of_step(*read.record, part, stacks[i].role));
      series.x.push_back(static_cast<double>(i));
      series.y.push_back(records::mean(values));
    }
    if (records::sum(series.y) > 0) chart.series.push_back(std::move(series));
  }
  if (chart.series.empty()) {
    if (!stacks.empty()) plot.notes.emplace_back("No phases were recorded.");
    return;
  }
  chart.text = "Times are means over the trainers, without evaluations and checkpoints.";
  plot.charts.push_back(std::move(chart));
}

}  // namespace

std::vector<ReadRun> read_runs(const Observations& members, RunFolders& folders, Plot& plot) {
  std::vector<ReadRun> runs;
  for (const Observation& member : members) {
    const RunRecord* record = folders.record(*member.run);
    if (record == nullptr) {
      plot.notes.push_back(fmt::format("{} is not drawn: its folder is gone.", member.run->plan.key));
    } else {
      runs.push_back({member.run, record});
    }
  }
  return runs;
}

std::string joined(const std::string& a, const std::string& b) { return a.empty() || b.empty() ? a + b : a + ", " + b; }

void add_run_charts(const PlotSpec& spec, const Observations& observations, RunFolders& folders, Plot& plot) {
  switch (spec.kind) {
    case PlotKind::curves:
      return add_curves(spec, observations, folders, plot);
    case PlotKind::usage:
      return add_usage(spec, observations, folders, plot);
    case PlotKind::phases:
      return add_phases(spec, observations, folders, plot);
    case PlotKind::timeline:
      return add_timelines(spec, observations, folders, plot);
    case PlotKind::lines:
    case PlotKind::bars:
    case PlotKind::speed_up:
      return;
  }
}

}  // namespace lockstep::report
