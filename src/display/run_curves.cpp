#include "display/run_curves.h"

#include <fmt/format.h>

#include <algorithm>

#include "records/format.h"
#include "terminal/text.h"

namespace lockstep::display {
namespace {

using records::CsvTable;
using records::RunRecord;

constexpr size_t kHeight = 8;
constexpr size_t kNarrowest = 60;
constexpr size_t kWidest = 200;

/// Returns an estimate as exact as the logs allow: the last step of an epoch has a line if it was evaluated.
double steps_per_epoch(const RunRecord& run) {
  double result = 0;
  for (const CsvTable* table : {&run.chief().steps, &run.evals()}) {
    const auto step = table->column("step");
    const auto epoch = table->column("epoch");
    for (size_t i = 0; i < std::min(step.size(), epoch.size()); ++i) {
      if (epoch[i] > 0 && step[i] / epoch[i] > result) result = step[i] / epoch[i];
    }
  }
  return result > 0 ? result : 1;
}

records::Curve curve(const RunRecord& run, const CsvTable& table, const char* column, Over over, size_t width) {
  const auto x = table.column(over == Over::seconds ? "seconds" : "step");
  std::vector<double> places(x.begin(), x.end());
  if (over == Over::epochs) {
    const double each = steps_per_epoch(run);
    for (double& place : places) place /= each;
  }
  return records::downsampled(places, table.column(column), width * 4);
}

// Numbers of damaged files may be too long for the axis.
std::string accuracy_text(double accuracy) {
  return accuracy >= -10 && accuracy <= 10 ? fmt::format("{:.1f} %", accuracy * 100) : fmt::format("{:.2g}", accuracy);
}

std::string seconds_text(double seconds) {
  return seconds >= 0 && seconds < 1e15 ? terminal::duration_text(seconds) : fmt::format("{:.2g} s", seconds);
}

enum class Quantity : uint8_t { loss, accuracy };

std::vector<std::string> chart(const terminal::Terminal& terminal, Quantity quantity, const std::string& title,
                               const std::vector<terminal::Series>& series, Over over, size_t width) {
  terminal::ChartOptions options{title,
                                 over == Over::steps     ? "steps"
                                 : over == Over::seconds ? "time"
                                                         : "epochs",
                                 width, kHeight};
  options.y_text = quantity == Quantity::accuracy ? accuracy_text : [](double v) { return terminal::loss_text(v); };
  if (over == Over::steps) options.x_text = records::count_text;
  if (over == Over::seconds) options.x_text = seconds_text;
  return terminal::line_chart(terminal, series, options);
}

/// Gives each chart half of the terminal if that is wide enough.
size_t chart_width(size_t width) {
  width = std::clamp(width, kNarrowest, kWidest);
  return width >= 100 ? (width - 4) / 2 : width;
}

}  // namespace

std::string run_curves(const terminal::Terminal& terminal, const RunRecord& run, size_t width) {
  const size_t each = chart_width(width);
  const auto draw = [&](Quantity quantity, const char* column) {
    return chart(terminal, quantity, column,
                 {{"training", curve(run, run.chief().steps, column, Over::steps, each)},
                  {"evaluation", curve(run, run.evals(), column, Over::steps, each)}},
                 Over::steps, each);
  };
  return terminal::beside(draw(Quantity::loss, "loss"), draw(Quantity::accuracy, "accuracy"),
                          std::max(width, kNarrowest));
}

std::string overlaid_curves(const terminal::Terminal& terminal, const std::vector<RunRecord>& runs, Over over,
                            size_t width) {
  const size_t each = chart_width(width);
  std::vector<terminal::Series> losses;
  std::vector<terminal::Series> accuracies;
  std::vector<terminal::Series> test_losses;
  std::vector<std::string> names;
  bool has_accuracy = false;
  for (const RunRecord& run : runs) {
    losses.push_back({"", curve(run, run.chief().steps, "loss", over, each)});
    accuracies.push_back({"", curve(run, run.evals(), "accuracy", over, each)});
    test_losses.push_back({"", curve(run, run.evals(), "loss", over, each)});
    names.push_back(run.name);
    has_accuracy = has_accuracy || accuracies.back().curve.size() > 0;
  }
  const auto left = chart(terminal, Quantity::loss, "loss in training", losses, over, each);
  const auto right = has_accuracy
                         ? chart(terminal, Quantity::accuracy, "accuracy at evaluations", accuracies, over, each)
                         : chart(terminal, Quantity::loss, "loss at evaluations", test_losses, over, each);
  if (left.empty() && right.empty()) return "";
  std::string legend;
  for (const std::string& line : terminal::chart_legend(terminal, names, std::max(width, kNarrowest)))
    legend += line + "\n";
  return legend + terminal::beside(left, right, std::max(width, kNarrowest));
}

}  // namespace lockstep::display
