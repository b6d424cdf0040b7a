#include "guest/run_folder.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "lockstep/error.h"

namespace lockstep::guest {
namespace {

using Json = nlohmann::ordered_json;
using records::known;

std::string dumped(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string cell(double value) { return known(value) ? fmt::format("{}", value) : ""; }

void write_curve(const std::string& file, const std::vector<CurveRow>& rows) {
  if (rows.empty()) return;
  std::string text = "step,epoch,seconds,loss,accuracy\n";
  for (const CurveRow& row : rows) {
    text += fmt::format("{},{},{},{},{}\n", cell(row.step), cell(row.epoch), cell(row.seconds), cell(row.loss),
                        cell(row.accuracy));
  }
  base::write_whole_file(file, text);
}

double value_of(const Figures& figures, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const auto found = figures.values.find(name); found != figures.values.end()) return found->second;
  }
  return records::kUnknown;
}

void put(Json& json, const char* key, double value) {
  if (known(value)) json[key] = value;
}

double best_accuracy(const Figures& figures) {
  double best = records::kUnknown;
  for (const CurveRow& row : figures.evals) best = std::fmax(best, row.accuracy);
  return best;
}

Json worker_row(const RoleResult& role) {
  Json row{{"role", role.role}};
  put(row, "iterations", value_of(role.figures, {"iterations", "steps", "step"}));
  put(row, "examples", value_of(role.figures, {"examples"}));
  put(row, "finished_seconds", role.finished);
  put(row, "loss", value_of(role.figures, {"loss"}));
  put(row, "accuracy", value_of(role.figures, {"accuracy"}));
  return row;
}

std::string setting(const RunResult& run, std::string_view name) {
  const auto found =
      std::find_if(run.settings.begin(), run.settings.end(), [&](const auto& s) { return s.first == name; });
  return found == run.settings.end() ? "" : found->second;
}

Json summary_of(const RunResult& run, const RoleResult& role, bool chief) {
  Json json{{"role", role.role}, {"host", role.host}};
  const Figures& figures = role.figures;
  if (chief) {
    json["model"] = setting(run, "model");
    json["dataset"] = setting(run, "dataset");
    json["stop_reason"] = "the program ended";
  }
  const double seconds = value_of(figures, {"seconds"});
  put(json, "seconds", known(seconds) ? seconds : chief ? run.seconds : role.finished);
  put(json, "steps", value_of(figures, {"steps", "step"}));
  put(json, "epochs", value_of(figures, {"epochs", "epoch"}));
  put(json, "examples", value_of(figures, {"examples"}));
  put(json, "examples_per_second", value_of(figures, {"examples_per_second"}));
  put(json, "train_loss", value_of(figures, {"train_loss"}));
  put(json, "test_loss", value_of(figures, {"loss"}));
  put(json, "test_accuracy", value_of(figures, {"accuracy"}));
  put(json, "best_accuracy", best_accuracy(figures));
  json["ended"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::now()));
  return json;
}

}  // namespace

void check_is_new(const std::string& run_dir) {
  std::error_code ignored;
  if (!std::filesystem::exists(run_dir + "/config.yaml", ignored)) return;
  throw UsageError(fmt::format("--run-dir: {} already holds a run; give a new folder", run_dir));
}

void write_config(const RunResult& run) {
  Json json{{"command", fmt::format("{}", fmt::join(run.command, " "))}};
  for (const auto& [name, value] : run.settings) json[name] = value;
  std::string text;
  for (const auto& [name, value] : json.items()) {
    text += fmt::format("{}: {}\n", name, value.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  base::write_whole_file(run.run_dir + "/config.yaml", text);
}

void write_results(const RunResult& run) {
  Json workers = Json::array();
  for (const RoleResult& role : run.roles) {
    if (role.trains && run.roles.size() > 1) workers.push_back(worker_row(role));
  }
  for (const RoleResult& role : run.roles) {
    const bool chief = &role == &run.roles.front();
    write_curve(role.folder + "/evals.csv", role.figures.evals);
    write_curve(role.folder + "/steps.csv", role.figures.steps);
    Json json = summary_of(run, role, chief);
    if (chief && !workers.empty()) json["workers"] = workers;
    base::write_whole_file(role.folder + "/summary.json", dumped(json));
  }
  Json values = Json::object();
  for (const auto& [name, value] : run.roles.front().figures.values) values[name] = value;
  base::write_whole_file(run.run_dir + "/figures.json", dumped(values));
}

}  // namespace lockstep::guest
