#include "dash/lab_json.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/file.h"
#include "base/hash.h"
#include "dash/json_values.h"
#include "dash/run_files.h"
#include "lab/database.h"
#include "lockstep/error.h"

namespace lockstep::dash {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestReport = uint64_t{1} << 28;
constexpr const char* kReport = "/report.html";

/// Returns the name of an experiment's folder in the lab.
std::string folder_name(const std::string& folder) { return fs::path(folder).lexically_normal().filename().string(); }

bool has_report(const RunStore& store, const std::string& name) {
  const std::optional<std::string> folder = store.experiment_folder(name);
  return folder && lies_within(*folder + kReport, *folder);
}

ordered_json experiment_row(const RunStore& store, const lab::ExperimentRow& row) {
  const std::string folder = folder_name(row.folder);
  return {{"id", row.id},
          {"name", row.name},
          {"scale", row.scale},
          {"title", row.title},
          {"folder", folder},
          {"started", number(row.started)},
          {"ended", number(row.ended)},
          {"planned", row.planned},
          {"running", row.running},
          {"done", row.done},
          {"failed", row.failed},
          {"report", has_report(store, folder)}};
}

ordered_json values_json(const lab::Values& values) {
  ordered_json list = ordered_json::array();
  for (const auto& [name, value] : values) list.push_back({name, value});
  return list;
}

ordered_json result_json(const std::string& folder, const std::set<std::string>& there, const lab::RunResult& run) {
  const auto measured = [&](std::string_view field) {
    const auto found = run.measured.values.find(field);
    return number(found == run.measured.values.end() ? records::kUnknown : found->second);
  };
  const std::string id = run_id(folder, folder_name(run.folder));
  return {{"key", run.plan.key},
          {"group", run.plan.group},
          {"label", run.plan.label},
          {"repeat", run.plan.repeat},
          {"varied", values_json(run.plan.varied)},
          {"state", std::string(lab::name(run.state))},
          {"reason", run.reason},
          {"started", number(run.started)},
          {"ended", number(run.ended)},
          {"run", there.contains(id) ? ordered_json(id) : ordered_json(nullptr)},
          {"accuracy", measured("accuracy")},
          {"loss", measured("loss")},
          {"seconds", measured("seconds")},
          {"examples_per_second", measured("examples_per_second")}};
}

}  // namespace

std::string experiments_json(const std::string& lab_dir, const RunStore& store) {
  ordered_json json{{"experiments", ordered_json::array()}, {"folder", lab_dir}, {"notice", ""}};
  try {
    if (lab::is_lab(lab_dir)) {
      const lab::Database database(lab_dir, lab::Database::Access::read);
      for (const lab::ExperimentRow& row : database.experiments()) {
        json["experiments"].push_back(experiment_row(store, row));
      }
    }
  } catch (const std::exception& error) {
    json["notice"] = error.what();
  }
  return dumped(json);
}

std::optional<std::string> experiment_json(const std::string& lab_dir, const RunStore& store, int64_t id) {
  if (!lab::is_lab(lab_dir)) return std::nullopt;
  const lab::Database database(lab_dir, lab::Database::Access::read);
  const std::vector<lab::ExperimentRow> rows = database.experiments();
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& one) { return one.id == id; });
  if (row == rows.end()) return std::nullopt;
  const lab::Results results = database.results(id);
  ordered_json json = experiment_row(store, *row);
  json["about"] = results.experiment.about;
  json["command"] = results.command;
  json["host"] = results.environment.host;
  json["system"] = results.environment.system;
  json["processor"] = results.environment.processor;
  json["runs"] = ordered_json::array();
  const std::string folder = folder_name(row->folder);
  const std::set<std::string> there = store.ids();
  for (const lab::RunResult& run : results.runs) json["runs"].push_back(result_json(folder, there, run));
  return dumped(json);
}

uint64_t lab_stamp(const std::string& lab_dir) {
  uint64_t stamp = base::kHashStart;
  const auto add = [&](const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return;
    for (const auto value :
         {info.st_size, static_cast<off_t>(info.st_mtim.tv_sec), static_cast<off_t>(info.st_mtim.tv_nsec)}) {
      stamp = base::hashed(stamp, static_cast<uint64_t>(value));
    }
  };
  add(lab_dir + "/lab.sqlite");
  add(lab_dir + "/lab.sqlite-wal");
  for (const std::string& folder : folders_in(lab_dir)) add(lab_dir + "/" + folder + kReport);
  return stamp;
}

std::optional<std::string> read_report(const RunStore& store, const std::string& name) {
  if (!has_report(store, name)) return std::nullopt;
  try {
    const std::vector<uint8_t> bytes = base::read_file(*store.experiment_folder(name) + kReport, kLargestReport);
    return std::string(bytes.begin(), bytes.end());
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace lockstep::dash
