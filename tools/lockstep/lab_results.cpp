#include "lab_results.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "lab/noise.h"
#include "records/format.h"
#include "terminal/output.h"
#include "terminal/table.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

/// Returns the run's label if it is unique, otherwise its key.
std::string short_name(const lab::Results& results, const lab::RunResult& run) {
  if (run.plan.label.empty()) return run.plan.key;
  bool groups = false;
  bool repeats = false;
  for (const lab::RunResult& other : results.runs) {
    groups = groups || other.plan.group != run.plan.group;
    repeats = repeats || other.plan.repeat > 1;
    const bool same = other.plan.group == run.plan.group && other.plan.label == run.plan.label;
    if (&other != &run && same && other.plan.repeat == run.plan.repeat) return run.plan.key;
  }
  const std::string name = groups ? run.plan.group + ": " + run.plan.label : run.plan.label;
  return repeats ? fmt::format("{}, r{}", name, run.plan.repeat) : name;
}

void print_failures(const lab::Results& results, const terminal::Terminal& terminal) {
  size_t failed = 0;
  for (const lab::RunResult& run : results.runs) {
    if (run.state != lab::RunState::failed) continue;
    terminal::print("{}{} {}: {}\n", failed++ == 0 ? "\n" : "", short_name(results, run), terminal.red("failed"),
                    run.reason);
    if (const std::string log = log_of(results, run); !log.empty()) terminal::print("  log: {}\n", log);
  }
  if (failed > 0 && !results.command.empty()) terminal::print("to repeat: {}\n", results.command);
}

void print_disturbed(const lab::Results& results, const terminal::Terminal& terminal) {
  bool first = true;
  for (const lab::RunResult& run : results.runs) {
    if (run.state != lab::RunState::done || !lab::is_disturbed(run.measured.values)) continue;
    terminal::print("{}{} {}: {}\n", first ? "\n" : "", short_name(results, run), terminal.cyan("disturbed"),
                    lab::disturbed_text(run.measured.values));
    first = false;
  }
}

}  // namespace

std::string field_text(const lab::Measured& values, std::string_view field) {
  const auto found = values.find(field);
  const lab::FieldDef* def = lab::find_field(field);
  if (found == values.end() || def == nullptr) return "";
  const double value = found->second;
  switch (def->unit) {
    case lab::Unit::share:
      return terminal::percent(value);
    case lab::Unit::seconds:
      return value < 1 ? records::time_text(value) : terminal::duration_text(value);
    case lab::Unit::bytes:
      return terminal::scaled(value, "B");
    case lab::Unit::bytes_per_second:
      return terminal::scaled(value, "B/s");
    case lab::Unit::percent:
      return records::percent_text(value);
    case lab::Unit::count:
      return terminal::rate_text(value);
    case lab::Unit::times:
      return fmt::format("{:.2f}", value);
    case lab::Unit::none:
      return terminal::loss_text(value);
  }
  return "";
}

std::string result_text(const lab::Measured& values) {
  std::string text;
  for (const char* field : {"accuracy", "loss"}) {
    const std::string value = field_text(values, field);
    if (!value.empty()) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", field, value);
  }
  return text.empty() ? "done" : text;
}

void print_results(const lab::Results& results) {
  const terminal::Terminal terminal = terminal::Terminal::detect();
  const lab::Experiment& experiment = results.experiment;
  terminal::print("{}{}\nfolder: {}\n\n", terminal.bold(experiment.title),
                  experiment.scale.empty() ? "" : " (" + experiment.scale + ")", results.folder);
  constexpr auto kRight = terminal::Table::Align::right;
  terminal::Table table({{"run"},
                         {"state"},
                         {"accuracy", kRight},
                         {"loss", kRight},
                         {"time", kRight},
                         {"epoch", kRight},
                         {"examples/s", kRight},
                         {"CPU", kRight},
                         {"memory", kRight},
                         {"network", kRight},
                         {"waited", kRight},
                         {"restarts", kRight}});
  size_t gone = 0;
  for (const lab::RunResult& run : results.runs) {
    std::error_code ignored;
    const bool done = run.state == lab::RunState::done;
    if (done && !std::filesystem::exists(run.folder, ignored)) ++gone;
    std::vector<std::string> cells{short_name(results, run), std::string(name(run.state))};
    for (const char* field : {"accuracy", "loss", "seconds", "epoch_seconds", "examples_per_second", "cpu_percent",
                              "memory", "network_per_second", "wait_share"}) {
      cells.push_back(field_text(run.measured.values, field));
    }
    cells.push_back(lab::restarts(run) > 0 ? std::to_string(lab::restarts(run)) : "");
    table.add(std::move(cells));
  }
  table.drop_empty_columns();
  terminal::write_out(table.text(terminal, terminal::Terminal::width(), 1));
  print_failures(results, terminal);
  print_disturbed(results, terminal);
  if (gone > 0)
    terminal::print("{} gone: the curves are lost, the measured values are kept\n",
                    terminal::counted(gone, "run folder"));
}

}  // namespace lockstep::tools
