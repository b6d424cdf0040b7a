#include "run_json.h"

#include <nlohmann/json.hpp>
#include <span>

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

std::string state_text(records::RunState state) {
  return state == records::RunState::ended ? "ended" : state == records::RunState::running ? "running" : "broken";
}

std::string dumped(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string run_json(const records::RunRecord& run) {
  ordered_json json{{"run", run.name},
                    {"folder", run.path},
                    {"state", state_text(run.state)},
                    {"stop_reason", run.summary().text("stop_reason")},
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
                       {"efficiency", number(against->efficiency)},
                       {"sentences", against->sentences},
                       {"phases", phases}};
  }
  json["warnings"] = run.warnings;
  return dumped(json);
}

}  // namespace lockstep::tools
