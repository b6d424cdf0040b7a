#include "display/cluster_closing.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "display/role_report.h"
#include "display/train_messages.h"
#include "lockstep/error.h"
#include "process/line_reader.h"
#include "terminal/output.h"
#include "terminal/table.h"
#include "terminal/text.h"

namespace lockstep::display {
namespace {

using PlainJson = nlohmann::json;
using train::Outcome;
using train::StopReason;

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

/// Reads the outcome in the chief's summary.json; nothing if there is none.
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
  outcome.aside_seconds = or_zero(number(summary, "aside_seconds"));
  outcome.examples_per_second = or_zero(number(summary, "examples_per_second"));
  outcome.train_loss = number(summary, "train_loss");
  outcome.train_accuracy = number(summary, "train_accuracy");
  outcome.last_eval = evaluation(summary, "test");
  outcome.best_eval = evaluation(summary, "best");
  outcome.peak_memory_bytes = count(summary, "peak_memory_bytes");
  const auto role = summary.find("role");
  if (role != summary.end() && role->is_string()) outcome.role = process::printable(role->get<std::string>());
  read_communication(summary, outcome);
  return outcome;
}

/// Returns the restarts as the summary counts them, so that all tables of a run agree.
std::string restarts_text(const WorkerResult& worker, const Restarts& restarts) {
  return std::isnan(worker.restarts) ? std::to_string(restarts(worker.role)) : fmt::format("{:.0f}", worker.restarts);
}

/// Returns the table of workers, without columns in which no worker has a value.
std::string workers_table(const terminal::Terminal& terminal, const std::vector<WorkerResult>& workers,
                          const Restarts& restarts) {
  using Cells = std::vector<std::string>;
  const Cells titles{"worker",  "iterations", "examples", "finished after", "staleness",
                     "at most", "waited",     "dropped",  "accuracy",       "restarts"};
  std::vector<Cells> rows;
  for (const WorkerResult& w : workers) {
    const auto if_known = [](double value, const auto& format) {
      return std::isnan(value) ? std::string() : format(value);
    };
    const auto whole = [](double value) { return terminal::grouped(static_cast<uint64_t>(std::max(value, 0.0))); };
    rows.push_back(
        {w.role, if_known(w.iterations, whole), if_known(w.examples, whole),
         if_known(w.finished_seconds, terminal::duration_text),
         if_known(w.staleness_mean, [](double value) { return fmt::format("{:.2f}", value); }),
         if_known(w.staleness_max, whole),
         if_known(w.wait_share, [](double value) { return terminal::percent(value, 1); }), if_known(w.dropped, whole),
         if_known(w.accuracy, [](double value) { return terminal::percent(value); }), restarts_text(w, restarts)});
  }
  std::vector<size_t> shown;
  std::vector<terminal::Table::Column> columns;
  for (size_t c = 0; c < titles.size(); ++c) {
    if (std::all_of(rows.begin(), rows.end(), [c](const Cells& row) { return row[c].empty(); })) continue;
    shown.push_back(c);
    columns.push_back({titles[c], c == 0 ? terminal::Table::Align::left : terminal::Table::Align::right});
  }
  terminal::Table table(columns);
  for (const Cells& row : rows) {
    Cells cells;
    for (const size_t c : shown) cells.push_back(row[c]);
    table.add(cells);
  }
  return rows.empty() ? "" : "\n" + table.text(terminal);
}

}  // namespace

void print_cluster_closing(const terminal::Terminal& terminal, const settings::Settings& settings,
                           const std::string& run_dir, const std::string& program, const Restarts& restarts,
                           bool already_finished) {
  const std::string summary = read_text(run_dir + "/summary.json");
  std::optional<Outcome> outcome = read_outcome(summary, run_dir);
  if (outcome) outcome->already_finished = already_finished;
  if (!outcome) {
    terminal::print("the roles ended without a result; their partial output is in {}\n", run_dir);
  } else if (settings.quiet) {
    print_result_line(settings, *outcome);
  } else {
    print_closing(terminal, settings, *outcome, program, workers_table(terminal, parse_workers(summary), restarts));
  }
}

}  // namespace lockstep::display
