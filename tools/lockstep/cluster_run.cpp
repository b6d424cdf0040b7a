#include "cluster_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "base/file.h"
#include "base/json.h"
#include "closing.h"
#include "cluster_display.h"
#include "lockstep/error.h"
#include "observe/trace/merge.h"
#include "output.h"
#include "table.h"
#include "text.h"

namespace lockstep::tools {
namespace {

using PlainJson = nlohmann::json;
using train::Outcome;
using train::StopReason;

constexpr std::array<std::string_view, 7> kLaunchSettings{"workers", "ps",     "layout",  "cpu-quota",
                                                          "emulate", "faults", "restarts"};
constexpr uint64_t kLargestSummary = 64'000'000;

std::string read_text(const std::string& path) {
  try {
    const std::vector<uint8_t> bytes = base::read_file(path, kLargestSummary);
    return {bytes.begin(), bytes.end()};
  } catch (const Error&) {
    return "";
  }
}

double number(const PlainJson& summary, const char* key) {
  const auto found = summary.find(key);
  return found != summary.end() && found->is_number() ? found->get<double>() : kUnknown;
}

uint64_t count(const PlainJson& summary, const char* key) {
  const double value = number(summary, key);
  return value >= 0 && value < 1e18 ? static_cast<uint64_t>(value) : 0;
}

std::optional<train::EvalEvent> evaluation(const PlainJson& summary, const std::string& which) {
  if (std::isnan(number(summary, (which + "_loss").c_str()))) return std::nullopt;
  train::EvalEvent event;
  event.loss = number(summary, (which + "_loss").c_str());
  event.accuracy = number(summary, (which + "_accuracy").c_str());
  event.step = count(summary, (which + "_step").c_str());
  return event;
}

StopReason stop_reason(const PlainJson& summary) {
  const auto found = summary.find("stop_reason");
  if (found == summary.end() || !found->is_string()) return StopReason::none;
  for (int i = 0; i <= static_cast<int>(StopReason::error); ++i) {
    if (text(static_cast<StopReason>(i)) == found->get<std::string>()) return static_cast<StopReason>(i);
  }
  return StopReason::none;
}

void read_communication(const PlainJson& summary, Outcome& outcome) {
  const auto found = summary.find("communication");
  if (found == summary.end() || !found->is_object()) return;
  const auto or_zero = [&](const char* key) {
    const double value = number(*found, key);
    return std::isnan(value) ? 0 : value;
  };
  const auto engine = found->find("engine");
  if (engine != found->end() && engine->is_string()) outcome.communication.engine = engine->get<std::string>();
  outcome.communication.buckets = count(*found, "buckets");
  outcome.communication.groups = count(*found, "groups");
  outcome.communication.bytes_per_step = or_zero("bytes_per_step");
  outcome.communication.transfer_seconds = or_zero("transfer_seconds");
  outcome.communication.overlapped = or_zero("overlapped");
  const auto lines = summary.find("stragglers");
  if (lines == summary.end() || !lines->is_array()) return;
  for (const PlainJson& line : *lines) {
    if (line.is_string()) outcome.stragglers.push_back(line.get<std::string>());
  }
}

/// From summary.json, which the chief wrote; nothing where there is none.
std::optional<Outcome> read_outcome(const std::string& summary_text, const std::string& run_dir) {
  const auto summary = base::parse_json_or_discard<PlainJson>(summary_text);
  if (!summary.is_object()) return std::nullopt;
  Outcome outcome;
  outcome.run_dir = run_dir;
  outcome.reason = stop_reason(summary);
  outcome.steps = count(summary, "steps");
  outcome.epochs = static_cast<int64_t>(count(summary, "epochs"));
  outcome.examples = count(summary, "examples");
  const auto or_zero = [](double value) { return std::isnan(value) ? 0 : value; };
  outcome.seconds = or_zero(number(summary, "seconds"));
  outcome.examples_per_second = or_zero(number(summary, "examples_per_second"));
  outcome.train_loss = number(summary, "train_loss");
  outcome.train_accuracy = number(summary, "train_accuracy");
  outcome.last_eval = evaluation(summary, "test");
  outcome.best_eval = evaluation(summary, "best");
  outcome.peak_memory_bytes = count(summary, "peak_memory_bytes");
  read_communication(summary, outcome);
  return outcome;
}

/// As wide as what is known: columns in which nobody has a value are left out.
std::string workers_table(const Terminal& terminal, const std::vector<WorkerResult>& workers,
                          const ClusterDisplay& display) {
  using Cells = std::vector<std::string>;
  const Cells titles{"worker",  "iterations", "examples", "finished after", "staleness",
                     "at most", "waited",     "dropped",  "accuracy",       "restarts"};
  std::vector<Cells> rows;
  for (const WorkerResult& w : workers) {
    const auto if_known = [](double value, const auto& format) {
      return std::isnan(value) ? std::string() : format(value);
    };
    const auto whole = [](double value) { return grouped(static_cast<uint64_t>(std::max(value, 0.0))); };
    rows.push_back({w.role, if_known(w.iterations, whole), if_known(w.examples, whole),
                    if_known(w.finished_seconds, duration_text),
                    if_known(w.staleness_mean, [](double value) { return fmt::format("{:.2f}", value); }),
                    if_known(w.staleness_max, whole),
                    if_known(w.wait_share, [](double value) { return percent(value, 1); }), if_known(w.dropped, whole),
                    if_known(w.accuracy, [](double value) { return percent(value); }),
                    std::to_string(display.restarts(w.role))});
  }
  std::vector<size_t> shown;
  std::vector<Table::Column> columns;
  for (size_t c = 0; c < titles.size(); ++c) {
    if (std::all_of(rows.begin(), rows.end(), [c](const Cells& row) { return row[c].empty(); })) continue;
    shown.push_back(c);
    columns.push_back({titles[c], c == 0 ? Table::Align::left : Table::Align::right});
  }
  Table table(columns);
  for (const Cells& row : rows) {
    Cells cells;
    for (const size_t c : shown) cells.push_back(row[c]);
    table.add(cells);
  }
  return rows.empty() ? "" : "\n" + table.text(terminal);
}

void close(const ClusterRun& run, const Terminal& terminal, const ClusterDisplay& display) {
  const std::string summary = read_text(run.run_dir + "/summary.json");
  const std::optional<Outcome> outcome = read_outcome(summary, run.run_dir);
  if (!outcome) {
    print("the roles ended without a result; partial output is in {}\n", run.run_dir);
  } else if (run.settings->quiet) {
    print_result_line(*run.settings, *outcome);
  } else {
    print_closing(terminal, *run.settings, *outcome, run.program,
                  workers_table(terminal, parse_workers(summary), display));
  }
}

/// What goes wrong is no reason to fail: the run itself is done.
void merge_traces(const std::string& run_dir, const Terminal& terminal) {
  std::vector<std::string> problems;
  try {
    problems = observe::merge_traces(run_dir).problems;
  } catch (const Error& error) {
    problems.push_back(fmt::format("the traces of the roles are not merged: {}", error.what()));
  }
  for (const std::string& problem : problems) print_note(terminal, "warning", problem);
}

}  // namespace

int run_cluster(const ClusterRun& run) {
  const Terminal terminal = Terminal::detect();
  ClusterDisplay display(terminal, run.tasks, train::value_text(*run.settings, "eval-split"), run.settings->quiet);
  std::error_code ignored;
  std::filesystem::remove(run.run_dir + "/summary.json", ignored);  // of a run that is resumed: it says nothing of now
  if (run.settings->trace) observe::remove_traces(run.run_dir);

  const cluster::CaughtSignals signals;
  cluster::SupervisorOptions options;
  options.restarts = static_cast<int>(run.settings->restarts);
  options.signals = signals.fd();
  const bool servers =
      std::any_of(run.tasks.begin(), run.tasks.end(), [](const auto& task) { return task.role == cluster::Role::ps; });
  // All-reduce goes on with those that there are, and nobody leaves before all is written.
  if (!servers) options.enough_members = std::max(1, static_cast<int>(run.settings->min_workers));
  if (terminal.interactive) options.tick = cluster::SupervisorOptions::Time(200);
  if (run.faults) options.tick = cluster::SupervisorOptions::Time(20);
  const cluster::JobOutcome ended = cluster::Supervisor(run.roles, options, [&](const cluster::RoleEvent& event) {
                                      if (run.also) run.also(event);
                                      if (run.faults) display.faults(run.faults());
                                      display.on_event(event);
                                    }).run();
  display.finish();
  const std::string missing = run.collect ? run.collect() : "";
  const std::string uncollected = missing.empty() ? "" : "cannot collect the run's files: " + missing;
  if (run.settings->trace) merge_traces(run.run_dir, terminal);
  if (ended.failure) {
    cluster::RoleFailure failure = *ended.failure;
    const bool discarded = run.discard && run.discard();
    if (!uncollected.empty()) failure.text += "; " + uncollected;
    if (ended.code == 2) failure.kind = cluster::RoleFailure::Kind::usage;
    if (ended.code != 2 && !discarded) failure.output = run.run_dir;
    throw cluster::RunError(failure);
  }
  close(run, terminal, display);
  if (!uncollected.empty()) throw IoError(uncollected);
  return ended.code;
}

bool is_launch_setting(std::string_view name) {
  return std::find(kLaunchSettings.begin(), kLaunchSettings.end(), name) != kLaunchSettings.end();
}

std::string launch_yaml(const train::Settings& settings) {
  std::string yaml;
  for (const std::string_view name : kLaunchSettings) {
    const train::SettingDef& def = *train::find_setting(name);
    const std::string value = train::value_text(settings, def);
    const bool text = name == "layout" || name == "emulate" || name == "faults";
    yaml += fmt::format("{}: {}\n", train::yaml_key(def), text ? "\"" + value + "\"" : value);
  }
  return yaml;
}

void apply_launch_yaml(train::Configuration& configuration, const std::string& run_dir) {
  const std::string path = run_dir + "/launch.yaml";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  train::Configuration kept;
  kept.load_yaml(path);
  for (const std::string_view name : kLaunchSettings) {
    const std::string value = kept.given_text(name);
    if (!value.empty() && !configuration.given(name) && name != "faults") configuration.set(name, value);
  }
}

}  // namespace lockstep::tools
