#include "dash/run_json.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "dash/json_values.h"
#include "dash/nodes.h"
#include "dash/pictures.h"
#include "records/format.h"
#include "records/run_values.h"
#include "records/why.h"

namespace lockstep::dash {
namespace {

using records::known;

ordered_json place_json(const RunPlace& place, double changed) {
  return {{"id", place.id},
          {"name", std::filesystem::path(place.path).filename().string()},
          {"experiment", place.experiment},
          {"changed", number(changed)}};
}

ordered_json results_json(const records::RunRecord& run) {
  double best = run.summary().number("best_accuracy");
  if (!known(best)) best = records::largest(run.evals().column("accuracy"));
  return {{"accuracy", number(run.test_accuracy())},
          {"best_accuracy", number(best)},
          {"loss", number(run.test_loss())},
          {"train_loss", number(known(run.train_loss()) ? run.train_loss() : run.chief().steps.last("loss"))},
          {"seconds", number(run.seconds())},
          {"steps", number(run.steps())},
          {"examples", number(run.examples())},
          {"examples_per_second", number(run.examples_per_second())},
          {"seconds_per_step", number(run.seconds_per_step())},
          {"epoch", number(std::fmax(run.chief().steps.last("epoch"), run.evals().last("epoch")))}};
}

/// Returns the steps of the whole plan, once the first epoch is over; NaN before, or if the plan has no end.
double planned_steps(const records::RunRecord& run) {
  const double most = run.number_setting("max_steps");
  const double epochs = run.number_setting("epochs");
  const records::CsvTable& log = run.chief().steps;
  const auto step = log.column("step");
  const auto epoch = log.column("epoch");
  double by_epochs = records::kUnknown;
  for (size_t i = 1; i < epoch.size() && epochs > 0; ++i) {
    // The last line of an epoch may lie before its end, the first of the next one lies behind it.
    if (epoch[i] > epoch[i - 1] && epoch[i] >= 2) by_epochs = step[i] * epochs / (epoch[i] - 1);
  }
  return std::fmin(most > 0 ? most : records::kUnknown, by_epochs);
}

/// Returns the finished part of the run's plan, from 0 to 1; NaN if the plan has no end.
double progress(const records::RunRecord& run) {
  const double epochs = run.number_setting("epochs");
  const double by_steps = run.steps() / planned_steps(run);
  const double by_epochs = epochs > 0 ? std::max(0.0, run.chief().steps.last("epoch") - 1) / epochs : records::kUnknown;
  const double part = std::fmax(by_steps, by_epochs);
  return known(part) ? std::min(1.0, part) : records::kUnknown;
}

/// Returns the seconds until the plan is done at the speed so far; NaN if unknown. A stop rule may end it sooner.
double seconds_left(const records::RunRecord& run) {
  const auto step = run.chief().steps.column("step");
  const auto seconds = run.chief().steps.column("seconds");
  if (run.state != records::RunState::running || step.size() < 2) return records::kUnknown;
  const double pace = (seconds.back() - seconds.front()) / (step.back() - step.front());
  const double left = (planned_steps(run) - step.back()) * pace;
  return pace > 0 && left >= 0 && std::isfinite(left) ? left : records::kUnknown;
}

void add_identity(ordered_json& json, const records::RunRecord& run) {
  json["state"] = records::state_text(run.state);
  json["stop_reason"] = run.summary().text("stop_reason");
  json["model"] = run.model();
  json["dataset"] = run.dataset();
  json["how"] = records::how_text(run);
  json["workers"] = run.workers();
  json["servers"] = run.servers();
  json["batch"] = number(run.number_setting("batch"));
  json["started"] = run.summary().text("started");
}

ordered_json worker_json(const records::RunRecord& run, const records::RoleRecord& role) {
  ordered_json json = ordered_json::object();
  if (const records::WorkerRow* row = run.worker(role.role)) {
    json["iterations"] = number(row->iterations);
    json["examples"] = number(row->examples);
    json["dropped"] = number(row->dropped);
    json["restarts"] = number(row->restarts);
    json["finished"] = number(row->finished_seconds);
    json["wait_share"] = number(row->wait_share);
    json["staleness"] = number(row->staleness_mean);
  }
  return json;
}

/// Returns the latest step that a role tells of. A server has no steps of its own, but the updates it made.
double latest_step(const records::RoleRecord& role) {
  if (!role.serves()) return role.steps.last("step");
  return role.has_summary ? role.summary.number("updates") : role.phase_log.last("step");
}

ordered_json roles_json(const records::RunRecord& run, double now) {
  const std::vector<records::NodeRecord> nodes = nodes_of(run);
  ordered_json list = ordered_json::array();
  for (const records::RoleRecord& role : run.roles) {
    const auto node = std::find_if(nodes.begin(), nodes.end(), [&](const records::NodeRecord& n) {
      return std::find(n.roles.begin(), n.roles.end(), role.role) != n.roles.end();
    });
    ordered_json json{{"role", role.role},
                      {"node", node == nodes.end() ? role.host : node->name},
                      {"state", role_state(run, role, now)},
                      {"step", number(run.roles.size() == 1 ? run.steps() : latest_step(role))},
                      {"cpu_percent", number(role.resource("cpu_percent").mean)},
                      {"memory", number(role.peak_memory())},
                      {"received", number(role.resource("wire_received").mean)},
                      {"sent", number(role.resource("wire_sent").mean)}};
    json.update(worker_json(run, role));
    list.push_back(std::move(json));
  }
  return list;
}

ordered_json diagnosis_json(const records::RunRecord& run) {
  const records::Diagnosis diagnosis = records::diagnose(run);
  ordered_json json{{"cause", diagnosis.cause},
                    {"headline", diagnosis.headline},
                    {"sentences", diagnosis.sentences},
                    {"suggestions", diagnosis.suggestions}};
  json["evidence"] = ordered_json::array();
  for (const records::Evidence& evidence : diagnosis.evidence) {
    json["evidence"].push_back({{"what", evidence.what}, {"text", evidence.text}});
  }
  return json;
}

/// Returns whether the folder has a checkpoint to resume from.
bool has_checkpoint(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder + "/checkpoints", ignored)) {
    if (entry.path().extension() == ".ckpt") return true;
  }
  return false;
}

ordered_json pictures_json(const std::string& run) {
  ordered_json list = ordered_json::array();
  for (const Picture& one : pictures_of(run)) {
    list.push_back({{"file", one.file}, {"name", one.name}, {"step", one.step}});
  }
  return list;
}

ordered_json pairs_json(const std::vector<std::pair<std::string, std::string>>& pairs) {
  ordered_json list = ordered_json::array();
  for (const auto& [key, value] : pairs) list.push_back({key, value});
  return list;
}

}  // namespace

std::string row_json(const RunPlace& place, const records::RunRecord& run, double changed) {
  ordered_json json = place_json(place, changed);
  add_identity(json, run);
  json["lr"] = number(run.number_setting("lr"));
  json["epochs"] = number(run.number_setting("epochs"));
  json["progress"] = number(progress(run));
  json["warnings"] = run.warnings.size();
  json.update(results_json(run));
  return dumped(json);
}

std::string damaged_row_json(const RunPlace& place, const std::string& reason, double changed) {
  ordered_json json = place_json(place, changed);
  json["state"] = "broken";
  json["stop_reason"] = reason;
  json["warnings"] = 1;
  return dumped(json);
}

std::string run_json(const std::string& id, const records::RunRecord& run, double now) {
  ordered_json json{{"id", id},
                    {"name", run.name},
                    {"folder", run.path},
                    {"experiment", experiment_of(id)},
                    {"checkpoint", has_checkpoint(run.path)},
                    {"went_on", run.went_on}};
  add_identity(json, run);
  json["results"] = results_json(run);
  json["progress"] = number(progress(run));
  json["seconds_left"] = number(seconds_left(run));
  json["learning_rate"] = number(run.chief().steps.last("learning_rate"));
  json["pictures"] = pictures_json(run.path);
  json["parameters"] = number(run.summary().number("parameters"));
  json["why"] = diagnosis_json(run);
  json["roles"] = roles_json(run, now);
  json["faults"] = ordered_json::array();
  for (const records::FaultRecord& fault : run.faults) {
    json["faults"].push_back({{"seconds", number(fault.seconds)}, {"fault", fault.text}});
  }
  json["settings"] = pairs_json(run.settings);
  json["warnings"] = run.warnings;
  return dumped(json);
}

std::string compare_json(const std::vector<std::pair<std::string, RunPtr>>& runs) {
  ordered_json json;
  json["runs"] = ordered_json::array();
  std::vector<std::string> keys;
  std::set<std::string> seen;
  for (const auto& [id, run] : runs) {
    ordered_json row{{"id", id}, {"name", run->name}};
    add_identity(row, *run);
    row["results"] = results_json(*run);
    json["runs"].push_back(std::move(row));
    for (const auto& [key, value] : run->settings) {
      if (key != "run_dir" && seen.insert(key).second) keys.push_back(key);  // every run has its own folder
    }
  }
  json["settings"] = ordered_json::array();
  for (const std::string& key : keys) {
    ordered_json values = ordered_json::array();
    std::set<std::string> different;
    for (const auto& [id, run] : runs) {
      const std::string value = run->has_setting(key) ? run->setting(key) : "";
      different.insert(value);
      values.push_back(value);
    }
    if (different.size() > 1) json["settings"].push_back({{"name", key}, {"values", values}});
  }
  return dumped(json);
}

}  // namespace lockstep::dash
