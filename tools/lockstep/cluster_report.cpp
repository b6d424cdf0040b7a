#include "cluster_report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "cluster/lines.h"

namespace lockstep::tools {
namespace {

using nlohmann::json;

double number(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return kUnknown;
  const double value = found->get<double>();
  return std::isfinite(value) && std::fabs(value) < 1e18 ? value : kUnknown;
}

/// A text may hold what a terminal would obey.
std::string text(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? cluster::printable(found->get<std::string>()) : "";
}

json parse_object(const std::string& text) {
  json object = json::parse(text, nullptr, false);
  return object.is_object() ? object : json::object();
}

}  // namespace

std::optional<Report> parse_report(const std::string& line) {
  const json object = parse_object(line);
  Report report;
  report.event = text(object, "event");
  if (report.event.empty()) return std::nullopt;
  report.role = text(object, "role");
  report.state = text(object, "state");
  report.level = text(object, "level");
  report.text = text(object, "text");
  report.step = number(object, "step");
  report.steps = number(object, "steps");
  report.epoch = number(object, "epoch");
  report.epochs = number(object, "epochs");
  report.examples_per_s = number(object, "examples_per_s");
  report.loss = number(object, "loss");
  report.accuracy = number(object, "accuracy");
  report.staleness = number(object, "staleness");
  report.wait_share = number(object, "wait_share");
  if (const auto phases = object.find("phases"); phases != object.end() && phases->is_object()) {
    for (size_t i = 0; i < report.phases.size(); ++i) {
      const double share = number(*phases, name(static_cast<train::Phase>(i)).data());
      report.phases[i] = share >= 0 && share <= 1 ? share : 0;
    }
  }
  const auto best = object.find("best");
  report.best = best != object.end() && best->is_boolean() && best->get<bool>();
  return report;
}

std::vector<WorkerResult> parse_workers(const std::string& summary_json) {
  std::vector<WorkerResult> results;
  const json summary = parse_object(summary_json);
  const auto workers = summary.find("workers");
  if (workers == summary.end() || !workers->is_array()) return results;
  for (const json& worker : *workers) {
    if (!worker.is_object()) continue;
    results.push_back({text(worker, "role"), number(worker, "iterations"), number(worker, "examples"),
                       number(worker, "finished_seconds"), number(worker, "staleness_mean"),
                       number(worker, "staleness_max"), number(worker, "wait_share"), number(worker, "dropped"),
                       number(worker, "accuracy")});
  }
  return results;
}

}  // namespace lockstep::tools
