#include "chart/run_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "chart/columns.h"
#include "records/statistics.h"

namespace lockstep::chart {
namespace {

using records::Curve;
using records::known;
using records::RoleRecord;
using records::RunRecord;

/// More marks would hide the plot.
constexpr size_t kMostFaults = 200;

/// Returns the steps of an epoch, to place values within epochs; NaN if unknown.
double steps_of_epoch(const RunRecord& run) {
  const double epochs = run.summary().number("epochs");
  const double steps = run.summary().number("steps");
  return epochs > 0 && steps > 0 ? steps / epochs : records::kUnknown;
}

/// Returns how many steps of its own a worker had made at each step of the run, by its phases.csv; empty if unknown.
Curve own_steps(const RoleRecord& role) {
  const auto places = role.phase_log.column("step");
  const auto made = role.phase_log.column("steps");
  Curve own{{0}, {0}};
  for (size_t i = 0; i < std::min(places.size(), made.size()); ++i) {
    if (!known(places[i]) || !known(made[i]) || places[i] < own.x.back()) continue;
    own.x.push_back(places[i]);
    own.y.push_back(own.y.back() + made[i]);
  }
  return own.size() > 1 ? own : Curve{};
}

std::vector<double> own_places(const RoleRecord& role, const records::CsvTable& table) {
  const auto steps = table.column("step");
  std::vector<double> x(steps.begin(), steps.end());
  const Curve own = own_steps(role);
  for (double& step : x) step = own.size() > 1 && known(step) ? records::value_at(own, step) : records::kUnknown;
  return x;
}

std::vector<double> places(const RunRecord& run, const RoleRecord& role, const records::CsvTable& table, Over over) {
  if (over == Over::iteration) return own_places(role, table);
  const auto column = table.column(over == Over::seconds ? "seconds" : over == Over::step ? "step" : "epoch");
  std::vector<double> x(column.begin(), column.end());
  const double per_epoch = over == Over::epoch ? steps_of_epoch(run) : records::kUnknown;
  const auto steps = table.column("step");
  if (known(per_epoch) && steps.size() == x.size()) {
    std::transform(steps.begin(), steps.end(), x.begin(), [&](double step) { return step / per_epoch; });
  }
  return x;
}

/// Names a node with all roles on it. Roles that tell no host are on one machine.
std::string node_title(const RunRecord& run, const RoleRecord& role) {
  std::string roles;
  for (const RoleRecord& other : run.roles) {
    if (other.host == role.host) roles += (roles.empty() ? "" : ", ") + other.role;
  }
  return fmt::format("{} ({})", role.host.empty() ? "this node" : role.host, roles);
}

/// Returns how many samples of a monitor to draw: the last one, taken at the end, may cover so short an interval that
/// its rates mean nothing.
size_t drawn_samples(std::span<const double> times) {
  if (times.size() < 4) return times.size();
  std::vector<double> gaps;
  for (size_t i = 1; i + 1 < times.size(); ++i) gaps.push_back(times[i] - times[i - 1]);
  const double last = times.back() - times[times.size() - 2];
  return times.size() - (last < 0.5 * records::median(gaps) ? 1 : 0);
}

std::string role_title(const RoleRecord& role) {
  return role.host.empty() ? role.role : fmt::format("{} ({})", role.role, role.host);
}

double part_seconds(const RoleRecord& role, const PhasePart& part) {
  double seconds = 0;
  for (const std::string_view phase : part.phases) seconds += role.phase_seconds(phase);
  return seconds;
}

std::string id_of(const RunRecord& run, std::string_view what) { return fmt::format("{}-{}", run.name, what); }

/// Returns the spans with monitor samples. A gap of many intervals means that the process did not run.
std::vector<Span> presence(const RoleRecord& role, size_t row, double zero) {
  const std::vector<double> times = records::known_of(role.monitor.column("time"));
  std::vector<Span> spans;
  if (times.empty()) return spans;
  std::vector<double> gaps;
  for (size_t i = 1; i < times.size(); ++i) gaps.push_back(times[i] - times[i - 1]);
  const double usual = gaps.empty() ? 0 : records::median(gaps);
  const double begin = times.front() - std::max(0.0, role.monitor.column("seconds").front());
  spans.push_back({row, std::max(0.0, begin - zero), times.front() - zero, ""});
  for (size_t i = 1; i < times.size(); ++i) {
    if (times[i] - times[i - 1] > std::max(2.0, 6 * usual))
      spans.push_back({row, times[i] - zero, times[i] - zero, ""});
    spans.back().to = std::max(spans.back().to, times[i] - zero);
  }
  return spans;
}

std::string_view work_of(const RoleRecord& role) {
  if (role.serves()) return "serves";
  return role.trains() ? "trains" : "evaluates";
}

/// Returns when the role finished training, in seconds since the run began; infinity if the chief does not say.
double finished(const RunRecord& run, const RoleRecord& role) {
  const records::WorkerRow* row = run.worker(role.role);
  return role.trains() && row != nullptr && row->finished_seconds > 0 ? row->finished_seconds : INFINITY;
}

void add_spans(Chart& chart, const RunRecord& run, const RoleRecord& role, size_t row, double zero) {
  std::vector<Span> spans = known(zero) ? presence(role, row, zero) : std::vector<Span>{};
  const double last = role.steps.last("seconds");
  if (spans.empty() && last > 0) spans.push_back({row, 0, last, ""});
  const double begin = spans.empty() ? 0 : spans.front().from;
  for (Span& span : spans) {
    const double end = begin + finished(run, role);
    span.name = work_of(role);
    if (end > span.from && end < span.to) {
      chart.spans.push_back({row, span.from, end, span.name});
      span = {row, end, span.to, "has finished"};
    }
    chart.spans.push_back(span);
  }
}

}  // namespace

std::vector<Series> span_colors() {
  return {{.name = "trains", .x = {}, .y = {}, .color = 0},
          {.name = "serves", .x = {}, .y = {}, .color = 2},
          {.name = "evaluates", .x = {}, .y = {}, .color = 6},
          {.name = "has finished", .x = {}, .y = {}, .color = 7}};
}

Over over_of(std::string_view text) {
  if (text == "iteration") return Over::iteration;
  return text == "step" ? Over::step : text == "seconds" ? Over::seconds : Over::epoch;
}

Axis axis_of(Over over) {
  switch (over) {
    case Over::step:
      return {"step", ""};
    case Over::epoch:
      return {"epoch", ""};
    case Over::iteration:
      return {"own iterations", ""};
    case Over::seconds:
      break;
  }
  return {"time", "s"};
}

Axis curve_axis(std::string_view y) {
  if (y == "accuracy") return {"Accuracy on test data", "share"};
  if (y == "loss") return {"Loss on test data", ""};
  if (y == "train_loss") return {"Loss of batches in training", ""};
  if (y == "learning_rate") return {"Learning rate", ""};
  if (y == "train_accuracy") return {"Accuracy of batches in training", "share"};
  return {std::string(y), ""};
}

Curve curve(const RunRecord& run, const RoleRecord& role, std::string_view y, Over over) {
  const bool train = y.starts_with("train_");
  const bool steps = train || y == "learning_rate";
  const bool chief = role.role == run.chief().role;
  const records::CsvTable& table = steps ? role.steps : chief ? run.evals() : role.evals;
  const std::string_view column = train ? y.substr(6) : y;
  Curve result{places(run, role, table, over), {}};
  const auto values = table.column(column);
  result.y.assign(values.begin(), values.end());
  if (result.y.empty()) result.x.clear();
  return result;
}

Curve curve(const RunRecord& run, std::string_view y, Over over) { return curve(run, run.chief(), y, over); }

double beginning(const RunRecord& run) {
  double first = records::kUnknown;
  for (const RoleRecord& role : run.roles) {
    const auto times = role.monitor.column("time");
    const auto seconds = role.monitor.column("seconds");
    if (times.empty() || seconds.empty() || !known(times.front()) || !known(seconds.front())) continue;
    first = std::fmin(first, times.front() - seconds.front());
  }
  return first;
}

std::vector<Mark> faults(const RunRecord& run) {
  std::vector<Mark> marks;
  for (const records::FaultRecord& fault : run.faults) {
    if (known(fault.seconds) && marks.size() < kMostFaults) marks.push_back({fault.seconds, fault.text});
  }
  return marks;
}

Chart curves(const std::vector<const RunRecord*>& runs, const std::string& y, Over over) {
  Chart chart{.id = y,
              .title = curve_axis(y).label,
              .text = "",
              .x = axis_of(over),
              .y = curve_axis(y),
              .y2 = {},
              .series = {}};
  chart.y.label.clear();  // the title already says it
  chart.adjustable = y.ends_with("loss") || y.starts_with("train_");
  for (const RunRecord* run : runs) {
    Curve all = curve(*run, y, over);
    Curve points = records::downsampled(all.x, all.y, kMostPoints);
    chart.series.push_back({run->name, std::move(points.x), std::move(points.y)});
  }
  return chart;
}

Chart usage(const RunRecord& run, const std::string& column, const std::vector<std::string>& roles) {
  const ColumnText text = column_text(column);
  Chart chart{.id = id_of(run, column),
              .title = text.title,
              .text = "",
              .x = axis_of(Over::seconds),
              .y = {"", text.unit},
              .y2 = {},
              .series = {}};
  const double zero = beginning(run);
  std::set<std::string> seen;
  for (const RoleRecord& role : run.roles) {
    const bool wanted = roles.empty() || std::find(roles.begin(), roles.end(), role.role) != roles.end();
    if (!wanted || !role.monitor.has(column)) continue;
    if (text.of_node && !seen.insert(role.host).second) continue;
    const auto all = role.monitor.column("time");
    const auto times = all.first(drawn_samples(all));
    std::vector<double> x(times.begin(), times.end());
    for (double& time : x) time -= zero;
    Curve points = records::downsampled(x, role.monitor.column(column).first(times.size()), kMostPoints);
    chart.series.push_back(
        {text.of_node ? node_title(run, role) : role.role, std::move(points.x), std::move(points.y)});
  }
  if (!chart.series.empty()) chart.marks = faults(run);
  return chart;
}

Chart phases(const RunRecord& run) {
  Chart chart{.id = id_of(run, "phases"),
              .title = "Where the time went",
              .text = "Each bar shows on what a role spent its time.",
              .kind = Kind::stack,
              .x = {},
              .y = {"", "share"},
              .y2 = {},
              .series = {}};
  std::vector<const RoleRecord*> roles;
  for (const RoleRecord& role : run.roles) {
    if (role.all_phase_seconds() <= 0) continue;
    roles.push_back(&role);
    chart.x.categories.push_back(role_title(role));
  }
  for (const PhasePart& part : phase_parts()) {
    Series series{std::string(part.title), {}, {}};
    series.color = part.color;
    for (size_t i = 0; i < roles.size(); ++i) {
      series.x.push_back(static_cast<double>(i));
      series.y.push_back(part_seconds(*roles[i], part) / roles[i]->all_phase_seconds());
    }
    if (records::sum(series.y) > 0) chart.series.push_back(std::move(series));
  }
  return chart;
}

Chart timeline(const RunRecord& run) {
  Chart chart{.id = id_of(run, "timeline"),
              .title = "From when to when",
              .text = "",
              .kind = Kind::timeline,
              .x = axis_of(Over::seconds),
              .y = {},
              .y2 = {},
              .series = {}};
  const double zero = beginning(run);
  for (const RoleRecord& role : run.roles) {
    chart.rows.push_back(role_title(role));
    add_spans(chart, run, role, chart.rows.size() - 1, zero);
  }
  chart.series = span_colors();
  chart.marks = faults(run);
  return chart;
}

}  // namespace lockstep::chart
