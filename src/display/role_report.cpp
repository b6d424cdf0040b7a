#include "display/role_report.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/json.h"
#include "process/line_reader.h"

namespace lockstep::display {
namespace {

using PlainJson = nlohmann::json;

double reported_number(const PlainJson& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return kUnknown;
  const double value = found->get<double>();
  return std::isfinite(value) && std::fabs(value) < 1e18 ? value : kUnknown;
}

/// Returns a text without the characters that a terminal would obey.
std::string text(const PlainJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? process::printable(found->get<std::string>()) : "";
}

Report::Event event_of(const std::string& name) {
  constexpr std::array<std::string_view, 5> kNames{"status", "log", "eval", "end",
                                                   "resumed"};  // in the order of the enum
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  return static_cast<Report::Event>(found - kNames.begin());
}

PlainJson parse_object(const std::string& text) {
  PlainJson object = base::parse_json_or_discard<PlainJson>(text);
  return object.is_object() ? object : PlainJson::object();
}

}  // namespace

std::optional<Report> parse_report(const std::string& line) {
  const PlainJson object = parse_object(line);
  Report report;
  const std::string event = text(object, "event");
  if (event.empty()) return std::nullopt;
  report.event = event_of(event);
  report.role = text(object, "role");
  report.state = text(object, "state");
  report.level = text(object, "level");
  report.text = text(object, "text");
  report.step = reported_number(object, "step");
  report.steps = reported_number(object, "steps");
  report.epoch = reported_number(object, "epoch");
  report.epochs = reported_number(object, "epochs");
  report.examples_per_s = reported_number(object, "examples_per_s");
  report.seconds = reported_number(object, "seconds");
  report.examples = reported_number(object, "examples");
  report.loss = reported_number(object, "loss");
  report.accuracy = reported_number(object, "accuracy");
  report.train_loss = reported_number(object, "train_loss");
  report.train_accuracy = reported_number(object, "train_accuracy");
  report.staleness = reported_number(object, "staleness");
  report.wait_share = reported_number(object, "wait_share");
  if (const auto phases = object.find("phases"); phases != object.end() && phases->is_object()) {
    for (size_t i = 0; i < report.phases.size(); ++i) {
      const double share = reported_number(*phases, name(static_cast<train::Phase>(i)).data());
      report.phases[i] = share >= 0 && share <= 1 ? share : 0;
    }
  }
  const auto best = object.find("best");
  report.best = best != object.end() && best->is_boolean() && best->get<bool>();
  return report;
}

std::vector<WorkerResult> parse_workers(const std::string& summary_json) {
  std::vector<WorkerResult> results;
  const PlainJson summary = parse_object(summary_json);
  const auto workers = summary.find("workers");
  if (workers == summary.end() || !workers->is_array()) return results;
  for (const PlainJson& worker : *workers) {
    if (!worker.is_object()) continue;
    results.push_back({text(worker, "role"), reported_number(worker, "iterations"), reported_number(worker, "examples"),
                       reported_number(worker, "finished_seconds"), reported_number(worker, "staleness_mean"),
                       reported_number(worker, "staleness_max"), reported_number(worker, "wait_share"),
                       reported_number(worker, "dropped"), reported_number(worker, "accuracy"),
                       reported_number(worker, "restarts")});
  }
  return results;
}

}  // namespace lockstep::display
