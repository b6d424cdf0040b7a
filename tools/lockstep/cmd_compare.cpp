// lockstep compare: runs side by side.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/suggest.h"
#include "command.h"
#include "command_line.h"
#include "display/run_curves.h"
#include "display/run_tables.h"
#include "lockstep/error.h"
#include "records/fail_rules.h"
#include "records/format.h"
#include "records/hardware.h"
#include "run_choice.h"
#include "run_json.h"
#include "terminal/output.h"
#include "terminal/table.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

using records::known;
using records::RunRecord;

struct CompareArguments {
  std::vector<std::string> runs;
  std::string over = "steps";
  std::string runs_dir = "runs";
  std::string fail_if;
  bool json = false;
};

/// Exit code for a broken rule of --fail-if.
constexpr int kRuleBroken = 3;

display::Over read_over(const std::string& text) {
  const std::array<std::string, 3> names{"steps", "seconds", "epochs"};
  const auto* const found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) throw UsageError("--over: '" + text + "' is not known" + base::hint(text, names));
  return static_cast<display::Over>(found - names.begin());
}

/// A quantity of each run. Rows without any known value are left out.
struct ComparedRow {
  std::string what;
  std::vector<std::string> values;
};

template <class Value>
void add_row(std::vector<ComparedRow>& rows, const std::vector<RunRecord>& runs, std::string what, const Value& value) {
  ComparedRow row{std::move(what), {}};
  for (const RunRecord& run : runs) row.values.push_back(value(run));
  const auto filled = [](const std::string& text) { return !text.empty(); };
  if (std::any_of(row.values.begin(), row.values.end(), filled)) rows.push_back(std::move(row));
}

/// Returns the settings that differ between runs. Skips the run's folder, and settings unknown to an older run.
std::vector<ComparedRow> different_settings(const std::vector<RunRecord>& runs) {
  std::vector<std::string> keys{"model", "dataset"};
  for (const RunRecord& run : runs) {
    for (const auto& [key, value] : run.settings) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
  }
  std::vector<ComparedRow> rows;
  const auto differ = [](const auto& values) {
    return std::any_of(values.begin(), values.end(), [&](const auto& value) { return value != values.front(); });
  };
  const auto add_counts = [&](const char* what, size_t (RunRecord::*count)() const) {
    ComparedRow row{what, {}};
    for (const RunRecord& run : runs) row.values.push_back(std::to_string((run.*count)()));
    if (differ(row.values)) rows.push_back(std::move(row));
  };
  add_counts("workers", &RunRecord::workers);
  add_counts("servers", &RunRecord::servers);
  for (const std::string& key : keys) {
    if (key == "run_dir" || key == "runs_dir" || key == "name" || key == "workers" || key == "ps") continue;
    ComparedRow row{key, {}};
    std::vector<std::string> given;
    for (const RunRecord& run : runs) {
      row.values.push_back(run.setting(key));
      if (run.has_setting(key) || key.starts_with("options.")) given.push_back(row.values.back());
    }
    if (differ(given)) rows.push_back(std::move(row));
  }
  return rows;
}

std::string text_or_empty(double value, std::string (*text)(double)) { return known(value) ? text(value) : ""; }

/// Returns the largest value, or the sum, of a column over the roles of a run.
double over_roles(const RunRecord& run, const char* column, double records::ResourceUse::*of, bool sum) {
  double result = records::kUnknown;
  for (const records::RoleRecord& role : run.roles) {
    const double value = role.resource(column).*of;
    if (!known(value)) continue;
    result = !known(result) ? value : sum ? result + value : std::max(result, value);
  }
  return result;
}

double peak_memory(const RunRecord& run) {
  double all = 0;
  for (const records::RoleRecord& role : run.roles) {
    all += known(role.peak_memory()) ? role.peak_memory() : 0;
  }
  return all > 0 ? all : records::kUnknown;
}

double held_back(const RunRecord& run) {
  double all = 0;
  for (const auto& [role, held] : run.throttling) all += held.seconds;
  return run.throttling.empty() ? records::kUnknown : all;
}

std::string worker_share(const RunRecord& run, const std::string& phase) {
  double part = 0;
  double all = 0;
  for (const records::RoleRecord& role : run.roles) {
    if (!role.trains()) continue;
    part += role.phase_seconds(phase);
    all += role.all_phase_seconds();
  }
  return all > 0 && part > 0 ? records::share_text(part / all) : "";
}

void add_results(std::vector<ComparedRow>& rows, const std::vector<RunRecord>& runs) {
  const auto fraction = [](double value) { return terminal::percent(value); };
  add_row(rows, runs, "test accuracy", [&](const RunRecord& r) { return text_or_empty(r.test_accuracy(), fraction); });
  add_row(rows, runs, "test loss",
          [](const RunRecord& r) { return text_or_empty(r.test_loss(), terminal::loss_text); });
  add_row(rows, runs, "training loss",
          [](const RunRecord& r) { return text_or_empty(r.train_loss(), terminal::loss_text); });
  add_row(rows, runs, "steps", [](const RunRecord& r) { return text_or_empty(r.steps(), records::count_text); });
  add_row(rows, runs, "time", [](const RunRecord& r) { return text_or_empty(r.seconds(), terminal::duration_text); });
  add_row(rows, runs, "examples/s",
          [](const RunRecord& r) { return text_or_empty(r.examples_per_second(), records::count_text); });
  add_row(rows, runs, "speed-up", [&](const RunRecord& r) {
    const double factor = r.examples_per_second() / runs.front().examples_per_second();
    return known(factor) ? fmt::format("{:.2f}", factor) : "";
  });
  add_row(rows, runs, "efficiency", [&](const RunRecord& r) {
    const records::Efficiency efficiency = efficiency_of(r, runs.front());
    return known(efficiency.value) ? fmt::format("{} per {}", records::share_text(efficiency.value), efficiency.unit)
                                   : "";
  });
  add_row(rows, runs, "time per step",
          [](const RunRecord& r) { return text_or_empty(r.seconds_per_step(), records::time_text); });
}

void add_resources(std::vector<ComparedRow>& rows, const std::vector<RunRecord>& runs) {
  using Use = records::ResourceUse;
  add_row(rows, runs, "cores of workers", [](const RunRecord& r) {
    const double cores = hardware_of(r).cores;
    return known(cores) ? fmt::format("{:.3g}", cores) : "";
  });
  add_row(rows, runs, "CPU of all roles", [](const RunRecord& r) {
    return text_or_empty(over_roles(r, "cpu_percent", &Use::mean, true), records::percent_text);
  });
  add_row(rows, runs, "CPU of the node", [](const RunRecord& r) {
    return text_or_empty(over_roles(r, "node_cpu_percent", &Use::mean, false), records::percent_text);
  });
  add_row(rows, runs, "memory of all roles",
          [](const RunRecord& r) { return text_or_empty(peak_memory(r), records::amount_text); });
  add_row(rows, runs, "sent by all roles", [](const RunRecord& r) {
    return text_or_empty(over_roles(r, "wire_sent", &Use::mean, true), records::speed_text);
  });
  add_row(rows, runs, "held back by quota",
          [](const RunRecord& r) { return text_or_empty(held_back(r), records::time_text); });
  for (const char* phase : {"data", "forward", "backward", "optimizer", "push", "pull", "transfer", "others",
                            "evaluation", "checkpoint", "rest"}) {
    add_row(rows, runs, display::phase_name(phase), [&](const RunRecord& r) { return worker_share(r, phase); });
  }
}

/// Places as many runs side by side as fit; the first one always comes first.
std::string runs_side_by_side(const terminal::Terminal& terminal, const std::vector<RunRecord>& runs,
                              const std::vector<ComparedRow>& rows, size_t width) {
  std::vector<terminal::Table::Column> columns{{""}};
  for (const RunRecord& run : runs) columns.push_back({run.name, terminal::Table::Align::right});
  terminal::Table table(std::move(columns));
  for (const ComparedRow& row : rows) {
    std::vector<std::string> cells{row.what};
    cells.insert(cells.end(), row.values.begin(), row.values.end());
    table.add(std::move(cells));
  }
  return rows.empty() ? "" : table.text(terminal, width, 2);
}

/// Returns a line for each rule that a run breaks.
std::vector<std::string> broken_rules(const std::vector<records::FailRule>& rules, const std::vector<RunRecord>& runs) {
  std::vector<std::string> lines;
  const records::RunValues baseline = values_of(runs.front());
  for (size_t i = 1; i < runs.size(); ++i) {
    const records::RunValues values = values_of(runs[i]);
    for (const records::FailRule& rule : rules) {
      const std::string broken = broken_rule(rule, values, baseline);
      if (!broken.empty()) lines.push_back(fmt::format("{} against {}: {}", runs[i].name, runs.front().name, broken));
    }
  }
  return lines;
}

std::vector<SettingRow> setting_rows(const std::vector<ComparedRow>& rows) {
  std::vector<SettingRow> result;
  for (const ComparedRow& row : rows) result.emplace_back(row.what, row.values);
  return result;
}

int run_compare(const CompareArguments& arguments) {
  const display::Over over = read_over(arguments.over);
  const std::vector<records::FailRule> rules =
      arguments.fail_if.empty() ? std::vector<records::FailRule>{} : records::parse_fail_rules(arguments.fail_if);
  std::vector<RunRecord> runs;
  for (const std::string& run : arguments.runs) runs.push_back(choose_run(run, arguments.runs_dir));
  if (runs.size() < 2) throw UsageError("compare: takes two or more runs");
  const std::vector<std::string> broken = broken_rules(rules, runs);
  const int code = broken.empty() ? 0 : kRuleBroken;
  if (arguments.json) {
    terminal::write_out(compare_json(runs, setting_rows(different_settings(runs)), broken));
    return code;
  }
  const terminal::Terminal terminal = terminal::Terminal::detect();
  const size_t width = std::max<size_t>(terminal::Terminal::width(), 60);
  for (const RunRecord& run : runs) terminal::print("{}", run_headline(terminal, run, width));
  std::vector<ComparedRow> results;
  add_results(results, runs);
  add_resources(results, runs);
  const std::string settings = runs_side_by_side(terminal, runs, different_settings(runs), width);
  if (!settings.empty()) terminal::print("\n{}\n{}", terminal.bold("settings that differ"), settings);
  terminal::print("\n{}", runs_side_by_side(terminal, runs, results, width));
  const std::string curves = display::overlaid_curves(terminal, runs, over, width);
  if (!curves.empty()) terminal::print("\n{}", curves);
  std::string warnings;
  for (const RunRecord& run : runs) warnings += warning_lines(terminal, run);
  if (!warnings.empty()) terminal::print("\n{}", warnings);
  if (!rules.empty()) terminal::print("\n");
  for (const std::string& line : broken) terminal::print("{} {}\n", terminal.red("fails:"), line);
  if (!rules.empty() && broken.empty()) terminal::print("{}\n", terminal.green("all rules are kept"));
  return code;
}

}  // namespace

void add_compare(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("compare", "Compare runs: results, settings and curves");
  const auto arguments = std::make_shared<CompareArguments>();
  app.add_option("RUN", arguments->runs, "Folders or names of two or more runs; the first is the baseline").required();
  app.add_option("--over", arguments->over, "The x axis of curves [steps]").type_name("steps|seconds|epochs");
  app.add_option("--runs-dir", arguments->runs_dir, "Folder of the runs [runs]").type_name("DIR");
  app.add_option("--fail-if", arguments->fail_if,
                 "Exit with 3 if a run differs from the first one by more: KEY<CHANGE or KEY>CHANGE, commas between")
      .type_name("RULES");
  app.add_flag("--json", arguments->json, "Print JSON");
  app.footer(
      "Keys of --fail-if: accuracy, loss, speed, seconds and the other numbers of `lockstep runs --help`. A change is "
      "in points (pt), in % of "
      "the first run's value, or in the key's own unit.\n\n"
      "Examples:\n"
      "  lockstep compare lenet-1 lenet-2\n"
      "  lockstep compare main-1 branch-1 --fail-if 'accuracy<-0.5pt,speed<-5%'    for CI\n"
      "  lockstep compare lr-1 lr-2 lr-3 --over seconds");
  app.callback([arguments, &invocation] { invocation.run = [arguments] { return run_compare(*arguments); }; });
}

}  // namespace lockstep::tools
