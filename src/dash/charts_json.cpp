#include "dash/charts_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "chart/run_charts.h"
#include "records/statistics.h"

namespace lockstep::dash {
namespace {

constexpr std::array kUsage = {"node_cpu_percent", "cpu_percent", "rss_bytes",    "wire_received",   "wire_sent",
                               "net_received",     "net_sent",    "disk_written", "node_memory_used"};

chart::Over over_of(const std::string& text) {
  if (text == "epoch") return chart::Over::epoch;
  return text == "seconds" ? chart::Over::seconds : chart::Over::step;
}

bool has_data(const chart::Chart& chart) {
  const auto drawn = [](const chart::Series& series) {
    return std::any_of(series.y.begin(), series.y.end(), [](double y) { return std::isfinite(y); });
  };
  return !chart.spans.empty() || std::any_of(chart.series.begin(), chart.series.end(), drawn);
}

/// Returns whether a chart has any value other than zero.
bool shows_use(const chart::Chart& chart) {
  return std::any_of(chart.series.begin(), chart.series.end(),
                     [](const chart::Series& series) { return records::largest(series.y) > 0; });
}

/// Returns what the roles used, all charts with the same time axis.
std::vector<chart::Chart> usage_charts(const records::RunRecord& run) {
  std::vector<chart::Chart> charts;
  double last = 0;
  for (const char* column : kUsage) {
    chart::Chart chart = chart::usage(run, column);
    if (!shows_use(chart)) continue;
    for (const chart::Series& series : chart.series) last = std::fmax(last, records::largest(series.x));
    charts.push_back(std::move(chart));
  }
  for (chart::Chart& chart : charts) chart.x.shows = {0, last};
  return charts;
}

/// Returns whether the values differ: a constant learning rate needs no curve.
bool varies(std::span<const double> values) {
  return std::any_of(values.begin(), values.end(), [&](double value) { return value != values.front(); });
}

class Charts {
 public:
  void add(const std::string& group, chart::Chart chart) {
    if (!has_data(chart)) return;
    text_ += (text_.empty() ? "" : ",") + ("{\"group\":\"" + group + "\",\"chart\":" + chart::to_json(chart) + "}");
  }
  [[nodiscard]] std::string text() const { return "{\"charts\":[" + text_ + "]}"; }

 private:
  std::string text_;
};

void add_curves(Charts& charts, const std::vector<const records::RunRecord*>& runs, const std::string& over) {
  for (const char* y : {"accuracy", "loss", "train_loss"}) charts.add("curves", chart::curves(runs, y, over_of(over)));
}

}  // namespace

std::string run_charts_json(const records::RunRecord& run, const std::string& over) {
  Charts charts;
  add_curves(charts, {&run}, over);
  if (varies(run.chief().steps.column("learning_rate"))) {
    charts.add("curves", chart::curves({&run}, "learning_rate", over_of(over)));
  }
  charts.add("time", chart::phases(run));
  charts.add("time", chart::timeline(run));
  for (chart::Chart& chart : usage_charts(run)) charts.add("usage", std::move(chart));
  return charts.text();
}

std::string compare_charts_json(const std::vector<RunPtr>& runs, const std::string& over) {
  Charts charts;
  std::vector<const records::RunRecord*> all;
  for (const RunPtr& run : runs) all.push_back(run.get());
  add_curves(charts, all, over);
  return charts.text();
}

}  // namespace lockstep::dash
