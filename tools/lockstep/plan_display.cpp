#include "plan_display.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

#include "plan/output.h"
#include "records/format.h"
#include "run_choice.h"
#include "terminal/chart.h"
#include "terminal/table.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

using plan::Plan;
using plan::Row;

std::string with_interval(const plan::Interval& interval) {
  const double around = std::max(interval.high - interval.value, interval.value - interval.low) / interval.value;
  return fmt::format("{} +-{:.0f} %", terminal::rate_text(interval.value), 100 * around);
}

std::string table_text(const terminal::Terminal& terminal, const Plan& plan, size_t width) {
  constexpr auto kRight = terminal::Table::Align::right;
  terminal::Table table({{"nodes", kRight},
                         {"way"},
                         {"batch", kRight},
                         {"link"},
                         {"delay", kRight},
                         {"step", kRight},
                         {"examples/s", kRight},
                         {"speed-up", kRight},
                         {"efficiency", kRight},
                         {"network", kRight},
                         {"server", kRight},
                         {"memory", kRight},
                         {"time", kRight},
                         {"cost", kRight},
                         {"limited by"}});
  for (const Row& row : plan.rows) {
    const bool links = row.nodes > 1;
    const std::string memory =
        std::isfinite(row.memory) ? records::amount_text(row.memory) + (row.fits ? "" : " !") : "";
    table.add({fmt::format("{}", row.nodes), plan::way_text(row), fmt::format("{:.0f}", row.batch),
               links ? plan::rate_text(row.rate) : "", links && row.delay > 0 ? records::time_text(row.delay) : "",
               records::time_text(row.step.value), with_interval(row.examples), fmt::format("{:.2f}", row.speed_up),
               records::share_text(row.efficiency), row.network > 0 ? records::share_text(row.network) : "",
               row.servers > 0 ? records::share_text(row.server) : "", memory,
               std::isfinite(row.seconds.value) ? terminal::duration_text(row.seconds.value) : "",
               std::isfinite(row.money) ? fmt::format("{:.3g}", row.money) : "", row.limit});
  }
  table.drop_empty_columns();
  return table.text(terminal, std::max<size_t>(width, 60), 3);
}

std::string chart_text(const terminal::Terminal& terminal, const Plan& plan, size_t width) {
  std::vector<terminal::Series> series;
  std::set<std::string> seen;
  const auto name_of = [&](const Row& row) {
    std::string name = plan::way_text(row);
    if (plan.choices.rates.size() > 1) name += " " + plan::rate_text(row.rate);
    if (plan.choices.batches.size() > 1) name += fmt::format(" batch {:.0f}", row.batch);
    if (plan.choices.delays.size() > 1) name += " delay " + records::time_text(row.delay);
    return name;
  };
  constexpr size_t kMostSeries = 6;
  for (const Row& first : plan.rows) {
    if (first.nodes == 1 || series.size() >= kMostSeries || !seen.insert(name_of(first)).second) continue;
    terminal::Series line{name_of(first), {}};
    for (const Row& row : plan.rows) {
      const bool alone = row.nodes == 1 && row.batch == first.batch;
      if (!alone && name_of(row) != line.name) continue;
      line.curve.x.push_back(static_cast<double>(row.nodes));
      line.curve.y.push_back(row.examples.value);
    }
    if (line.curve.size() > 1) series.push_back(std::move(line));
  }
  terminal::ChartOptions options;
  options.title = "examples/s";
  options.x_label = "nodes";
  options.width = std::min<size_t>(width, 80);
  options.height = 10;
  options.y_text = [](double value) { return terminal::scaled(value); };
  options.x_text = [](double value) { return fmt::format("{:.0f}", value); };
  std::string text;
  for (const std::string& line : terminal::line_chart(terminal, series, options)) {
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string choice_text(const terminal::Terminal& terminal, const char* what, const Row& row, const std::string& why) {
  return fmt::format("{}: {} node{}, {}, batch {:.0f}{}: {}; limited by {}.\n", terminal.bold(what), row.nodes,
                     row.nodes == 1 ? "" : "s", plan::way_text(row), row.batch,
                     row.nodes > 1 ? ", " + plan::rate_text(row.rate) : "", why, row.limit);
}

}  // namespace

std::string plan_text(const terminal::Terminal& terminal, const Plan& plan, size_t width) {
  std::string text =
      wrapped_text(fmt::format("plan for {}: nodes of {:.3g} core{}{}", terminal.bold(plan.basis.name),
                               plan.choices.cores, plan.choices.cores == 1 ? "" : "s",
                               plan.choices.epochs > 0 && std::isfinite(plan.basis.epoch_examples) && !plan.choices.goal
                                   ? fmt::format("; time and cost to {:g} epochs", plan.choices.epochs)
                                   : ""),
                   width);
  text += "\n" + table_text(terminal, plan, width);
  const std::string chart = chart_text(terminal, plan, width);
  if (!chart.empty()) text += "\n" + chart;
  text += "\n";
  if (plan.fastest) {
    const Row& row = plan.rows[*plan.fastest];
    text += choice_text(terminal, "fastest", row, terminal::rate_text(row.examples.value) + " examples/s");
  } else {
    text += "No choice fits into the memory of its nodes.\n";
  }
  if (plan.cheapest) {
    const Row& row = plan.rows[*plan.cheapest];
    text += choice_text(terminal, "cheapest", row, fmt::format("{:.3g} for the training", row.money));
  }
  if (plan.knee) {
    const Row& row = plan.rows[*plan.knee];
    text += choice_text(terminal, "knee", row, "beyond it, a node adds less than half of what the first one gives");
  }
  if (!plan.notes.empty()) text += "\n";
  for (const std::string& note : plan.notes) text += wrapped_text(note, width);
  return text;
}

}  // namespace lockstep::tools
