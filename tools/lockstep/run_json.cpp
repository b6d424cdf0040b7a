#include "run_json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <span>

#include "records/hardware.h"
#include "records/run_values.h"

namespace lockstep::tools {
namespace {

using nlohmann::ordered_json;
using records::known;

/// Number of points per curve: enough for a picture; the files have all.
constexpr size_t kPoints = 500;

ordered_json number(double value) { return known(value) ? ordered_json(value) : ordered_json(nullptr); }

ordered_json curve(const records::CsvTable& table, const char* column) {
  const records::Curve points = records::downsampled(table.column("step"), table.column(column), kPoints);
  return {{"step", points.x}, {column, points.y}};
}

ordered_json worker_json(const records::WorkerRow& row) {
  return {{"iterations", number(row.iterations)},
          {"examples", number(row.examples)},
          {"updates", number(row.updates)},
          {"dropped", number(row.dropped)},
          {"restarts", number(row.restarts)},
          {"finished_seconds", number(row.finished_seconds)},
          {"wait_share", number(row.wait_share)},
          {"staleness_mean", number(row.staleness_mean)},
          {"staleness_max", number(row.staleness_max)}};
}

ordered_json role_json(const records::RunRecord& run, const records::RoleRecord& role) {
  ordered_json json{{"role", role.role}, {"host", role.host}, {"folder", role.folder}};
  if (const records::WorkerRow* row = run.worker(role.role)) json["worker"] = worker_json(*row);
  json["phases"] = ordered_json::array();
  for (const records::PhaseTotals& phase : role.phases) {
    json["phases"].push_back({{"phase", phase.name},
                              {"count", number(phase.count)},
                              {"seconds", number(phase.seconds)},
                              {"share", number(phase.share)},
                              {"mean", number(phase.mean)},
                              {"p50", number(phase.p50)},
                              {"p95", number(phase.p95)},
                              {"p99", number(phase.p99)}});
  }
  json["samples"] = number(role.samples);
  json["resources"] = ordered_json::object();
  for (const auto& [name, use] : role.resources) {
    json["resources"][name] = {
        {"mean", number(use.mean)}, {"p50", number(use.p50)}, {"p95", number(use.p95)}, {"max", number(use.max)}};
  }
  return json;
}

ordered_json whole_or_number(double value) {
  if (known(value) && std::fabs(value) < 1e15 && value == std::floor(value)) return static_cast<int64_t>(value);
  return number(value);
}

ordered_json values_json(const std::string& folder, const records::RunValues& values) {
  ordered_json json{{"folder", folder}};
  for (const records::RunKey& key : records::run_keys()) {
    const auto found = values.find(key.name);
    if (found == values.end()) continue;
    const std::string name(key.name);
    if (key.kind == records::KeyKind::list) {
      json["tags"] = found->second.words;
    } else if (key.kind == records::KeyKind::number || key.kind == records::KeyKind::share) {
      json[name] = whole_or_number(found->second.number);
    } else {
      json[name] = found->second.text;
    }
  }
  return json;
}

std::string dumped(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string run_json(const records::RunRecord& run) {
  ordered_json json{{"run", run.name},
                    {"folder", run.path},
                    {"state", records::state_text(run.state)},
                    {"stop_reason", run.summary().text("stop_reason")},
                    {"tags", run.labels.tags},
                    {"note", run.labels.note},
                    {"model", run.model()},
                    {"dataset", run.dataset()},
                    {"workers", run.workers()},
                    {"servers", run.servers()},
                    {"steps", number(run.steps())},
                    {"examples", number(run.examples())},
                    {"seconds", number(run.seconds())},
                    {"examples_per_second", number(run.examples_per_second())},
                    {"seconds_per_step", number(run.seconds_per_step())},
                    {"train_loss", number(run.train_loss())},
                    {"test_loss", number(run.test_loss())},
                    {"test_accuracy", number(run.test_accuracy())}};
  json["settings"] = ordered_json::object();
  for (const auto& [key, value] : run.settings) json["settings"][key] = value;
  json["roles"] = ordered_json::array();
  for (const records::RoleRecord& role : run.roles) json["roles"].push_back(role_json(run, role));
  json["training"] = {{"loss", curve(run.chief().steps, "loss")}, {"accuracy", curve(run.chief().steps, "accuracy")}};
  json["evaluations"] = {{"loss", curve(run.evals(), "loss")}, {"accuracy", curve(run.evals(), "accuracy")}};
  json["warnings"] = run.warnings;
  return dumped(json);
}

std::string why_json(const records::RunRecord& run, const records::Diagnosis& diagnosis,
                     const std::optional<records::Comparison>& against) {
  ordered_json json{{"run", run.name},
                    {"cause", diagnosis.cause},
                    {"headline", diagnosis.headline},
                    {"sentences", diagnosis.sentences}};
  json["evidence"] = ordered_json::array();
  for (const records::Evidence& evidence : diagnosis.evidence) {
    json["evidence"].push_back({{"what", evidence.what}, {"value", number(evidence.value)}, {"text", evidence.text}});
  }
  json["suggestions"] = diagnosis.suggestions;
  json["causes"] = ordered_json::array();
  for (const records::Cause& cause : diagnosis.causes) {
    json["causes"].push_back(
        {{"cause", cause.cause}, {"who", cause.who}, {"cost", number(cause.cost)}, {"step", number(cause.step)}});
  }
  json["step"] = number(diagnosis.step);
  json["aside"] = number(diagnosis.aside);
  json["unexplained"] = number(diagnosis.unexplained);
  if (against) {
    ordered_json phases = ordered_json::array();
    for (const records::PhaseCost& cost : against->phases) {
      phases.push_back({{"phase", cost.phase},
                        {"seconds_per_example_before", number(cost.before)},
                        {"seconds_per_example", number(cost.now)}});
    }
    json["against"] = {{"headline", against->headline},
                       {"speed_up", number(against->speed_up)},
                       {"more_workers", number(against->more_workers)},
                       {"efficiency", number(against->efficiency.value)},
                       {"efficiency_per", against->efficiency.unit},
                       {"sentences", against->sentences},
                       {"phases", phases}};
  }
  json["warnings"] = run.warnings;
  return dumped(json);
}

std::string runs_json(std::span<const std::string> folders, std::span<const records::RunValues> values) {
  ordered_json list = ordered_json::array();
  for (size_t i = 0; i < folders.size(); ++i) {
    list.push_back(values_json(folders[i], values[i]));
    ordered_json& settings = list.back()["settings"] = ordered_json::object();
    for (const auto& [key, value] : values[i]) {
      if (records::find_run_key(key) == nullptr) settings[key] = value.text;
    }
  }
  return dumped(list);
}

std::string compare_json(const std::vector<records::RunRecord>& runs, const std::vector<SettingRow>& settings,
                         const std::vector<std::string>& failed) {
  ordered_json json{{"runs", ordered_json::array()}, {"settings", ordered_json::object()}, {"failed", failed}};
  for (const records::RunRecord& run : runs) {
    ordered_json row = values_json(run.path, values_of(run));
    const records::Efficiency efficiency = efficiency_of(run, runs.front());
    row["speed_up"] = number(run.examples_per_second() / runs.front().examples_per_second());
    row["efficiency"] = number(efficiency.value);
    row["efficiency_per"] = efficiency.unit;
    json["runs"].push_back(std::move(row));
  }
  for (const auto& [key, values] : settings) json["settings"][key] = values;
  return dumped(json);
}

}  // namespace lockstep::tools
