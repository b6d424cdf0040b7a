#include "records/run_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <optional>
#include <tuple>

#include "base/file.h"
#include "base/yaml_tree.h"
#include "lockstep/error.h"

namespace lockstep::records {
namespace {

namespace fs = std::filesystem;
using Warnings = std::vector<std::string>;

constexpr uint64_t kLargestFile = uint64_t{1} << 30;

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// Returns the text of a file, or nothing if there is none. Any other failure becomes a warning.
std::optional<std::string> read_text(const std::string& path, Warnings& warnings) {
  if (!exists(path)) return std::nullopt;
  try {
    const std::vector<uint8_t> bytes = base::read_file(path, kLargestFile);
    return std::string(bytes.begin(), bytes.end());
  } catch (const Error& error) {
    warnings.emplace_back(error.what());
    return std::nullopt;
  }
}

CsvTable read_table(const std::string& path, Warnings& warnings) {
  const std::optional<std::string> text = read_text(path, warnings);
  if (!text) return {};
  try {
    std::string problem;
    CsvTable table = CsvTable::parse_what_fits(*text, path, problem);
    if (!problem.empty()) warnings.push_back(problem);
    return table;
  } catch (const Error& error) {
    warnings.emplace_back(error.what());
    return {};
  }
}

/// Reads all monitor*.csv of a folder as one table.
CsvTable read_monitor(const std::string& folder, Warnings& warnings) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("monitor") && name.ends_with(".csv")) files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  CsvTable table;
  for (const std::string& file : files) table.append(read_table(file, warnings));
  return table;
}

void flatten(const base::YamlNode& node, const std::string& prefix,
             std::vector<std::pair<std::string, std::string>>& values) {
  for (size_t i = 0; i < node.items.size() && i < node.keys.size(); ++i) {
    const base::YamlNode& item = node.items[i];
    const std::string key = prefix + printable(node.keys[i].text);
    if (item.is(base::YamlNode::Kind::map)) flatten(item, key + ".", values);
    if (item.is(base::YamlNode::Kind::scalar) || item.is(base::YamlNode::Kind::null))
      values.emplace_back(key, printable(item.text));
  }
}

base::YamlNode read_yaml(const std::string& path, Warnings& warnings) {
  const std::optional<std::string> text = read_text(path, warnings);
  if (!text) return {};
  try {
    return base::parse_yaml(*text, path);
  } catch (const Error& error) {
    warnings.emplace_back(error.what());
    return {};
  }
}

/// Returns whether a process trains in the folder: takes a shared lock for a moment and releases it.
bool in_use(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(".") || !name.ends_with("lock")) continue;
    const base::FileHandle file(::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
    if (file.open() && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) return true;
  }
  return false;
}

/// Converts "2026-11-16T01:41:24Z" to seconds since 1970; NaN if the text is not a time.
double unix_time(const std::string& text) {
  std::tm time{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time);
  return end != nullptr && *end == '\0' ? static_cast<double>(::timegm(&time)) : kUnknown;
}

fs::file_time_type written(const std::string& path) {
  std::error_code error;
  const auto time = fs::last_write_time(path, error);
  return error ? fs::file_time_type::min() : time;
}

/// Returns whether the run went on after the chief's summary was written. File times are only the last resort, since
/// copies of a run have new ones.
bool is_behind(const RoleRecord& chief) {
  constexpr double kSlackSeconds = 2;  // `ended` has whole seconds
  constexpr auto kCopying = std::chrono::seconds(10);
  if (chief.steps.last("step") > chief.summary.number("steps")) return true;
  if (chief.monitor.last("time") > unix_time(chief.summary.text("ended")) + kSlackSeconds) return true;
  const auto age = written(chief.folder + "/steps.csv") - written(chief.folder + "/summary.json");
  return age > kCopying || (age.count() > 0 && in_use(chief.folder));
}

/// Adds up the log's phases as a summary would hold them.
std::vector<PhaseTotals> add_up(const CsvTable& log) {
  std::vector<PhaseTotals> phases;
  const std::span<const double> steps = log.column("steps");
  const double all_steps = sum(steps);
  double all = 0;
  for (const std::string& name : log.names()) {
    if (name == "step" || name == "seconds" || name == "steps" || name == "pushes") continue;
    const std::span<const double> seconds = log.column(name);
    const double total = sum(seconds);
    if (total <= 0) continue;
    all += total;
    phases.push_back({.name = name, .seconds = total});
    // The log has no counts of evaluations, checkpoints and a server's stages. All other phases occur in every step.
    if (name == "evaluation" || name == "checkpoint" || !(all_steps > 0)) continue;
    std::vector<double> each;
    for (size_t i = 0; i < std::min(seconds.size(), steps.size()); ++i) each.push_back(seconds[i] / steps[i]);
    PhaseTotals& phase = phases.back();
    phase.count = all_steps;
    phase.mean = total / all_steps;
    phase.p50 = percentile(each, 0.5);
    phase.p95 = percentile(each, 0.95);
    phase.p99 = percentile(each, 0.99);
  }
  for (PhaseTotals& phase : phases) phase.share = phase.seconds / all;
  return phases;
}

std::map<std::string, ResourceUse, std::less<>> add_up_monitor(const CsvTable& monitor) {
  std::map<std::string, ResourceUse, std::less<>> resources;
  for (const std::string& name : monitor.names()) {
    if (name == "time" || name == "seconds") continue;
    const std::span<const double> values = monitor.column(name);
    const double average = mean(values);
    if (!known(average)) continue;
    resources[name] = {average, percentile(values, 0.5), percentile(values, 0.95), largest(values)};
  }
  return resources;
}

/// Fills in phases and resources, from the summary or from the logs.
void add_up_role(RoleRecord& role) {
  role.phases = role.summary.phases.empty() ? add_up(role.phase_log) : role.summary.phases;
  role.resources = role.summary.resources;
  role.samples = role.summary.number("resources.samples");
  if (role.resources.empty()) {
    role.resources = add_up_monitor(role.monitor);
    role.samples = static_cast<double>(role.monitor.rows());
  }
}

RoleRecord read_role(const std::string& folder, const std::string& name, Warnings& warnings) {
  RoleRecord role;
  role.role = name;
  role.folder = folder;
  if (const auto text = read_text(folder + "/summary.json", warnings)) {
    try {
      role.summary = parse_summary(*text, folder + "/summary.json");
      role.has_summary = true;
    } catch (const Error& error) {
      warnings.emplace_back(error.what());
    }
  }
  role.host = role.summary.text("host");
  role.steps = read_table(folder + "/steps.csv", warnings);
  role.evals = read_table(folder + "/evals.csv", warnings);
  role.monitor = read_monitor(folder, warnings);
  role.phase_log = read_table(folder + "/phases.csv", warnings);
  add_up_role(role);
  return role;
}

struct RoleFolder {
  int kind = 0;
  uint64_t number = 0;
  std::string role;
  std::string path;
};

/// Recognises the folder of a role: "worker-1" belongs to worker:1. Returns nothing for other names.
std::optional<RoleFolder> role_folder(const fs::path& path) {
  const std::string name = path.filename().string();
  int kind = 0;
  for (const std::string prefix : {"chief", "worker", "ps", "evaluator"}) {
    ++kind;
    if (!name.starts_with(prefix + "-")) continue;
    RoleFolder folder{kind, 0, "", path.string()};
    const char* begin = name.data() + prefix.size() + 1;
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(begin, end, folder.number);
    if (error != std::errc() || stop != end) return std::nullopt;
    folder.role = fmt::format("{}:{}", prefix, folder.number);
    return folder;
  }
  return std::nullopt;
}

std::vector<RoleFolder> role_folders(const std::string& path) {
  std::vector<RoleFolder> folders;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path, ignored)) {
    if (!entry.is_directory(ignored)) continue;
    if (auto folder = role_folder(entry.path())) folders.push_back(std::move(*folder));
  }
  std::sort(folders.begin(), folders.end(), [](const RoleFolder& a, const RoleFolder& b) {
    return std::tie(a.kind, a.number) < std::tie(b.kind, b.number);
  });
  return folders;
}

size_t count_at(const base::YamlNode& cluster, std::string_view key) {
  const base::YamlNode* list = cluster.find(key);
  return list != nullptr && list->is(base::YamlNode::Kind::list) ? list->items.size() : 0;
}

void read_cluster(RunRecord& run) {
  const base::YamlNode cluster = read_yaml(run.path + "/cluster.yaml", run.warnings);
  run.planned_workers = count_at(cluster, "worker") + count_at(cluster, "chief");
  run.planned_servers = count_at(cluster, "ps");
}

/// Reads the cluster settings given to the launcher; the roles' config.yaml does not have them.
void read_launch(RunRecord& run) {
  std::vector<std::pair<std::string, std::string>> launch;
  flatten(read_yaml(run.path + "/launch.yaml", run.warnings), "", launch);
  for (auto& [key, value] : launch) {
    if (key == "workers" && run.planned_workers == 0) {
      std::from_chars(value.data(), value.data() + value.size(), run.planned_workers);
      run.planned_workers = std::min<size_t>(run.planned_workers, 1000000);
    }
    if (key == "workers" || key == "ps") continue;  // cluster.yaml has the actual numbers
    const auto found = std::find_if(run.settings.begin(), run.settings.end(),
                                    [&known = key](const auto& setting) { return setting.first == known; });
    if (found == run.settings.end()) {
      run.settings.emplace_back(key, value);
    } else {
      found->second = value;
    }
  }
}

/// Reads the files that the launcher wrote during and after the run.
void read_launched(RunRecord& run) {
  const auto with = [&](const char* name, const auto& parse) {
    const std::string path = run.path + "/" + name;
    const std::optional<std::string> text = read_text(path, run.warnings);
    if (!text) return;
    try {
      parse(*text, path);
    } catch (const Error& error) {
      run.warnings.emplace_back(error.what());
    }
  };
  using Text = const std::string&;
  with("throttling.json", [&](Text text, Text path) { run.throttling = parse_throttling(text, path); });
  with("nodes.json", [&](Text text, Text path) { run.nodes = parse_nodes(text, path); });
  with("faults.jsonl", [&](Text text, Text) { run.faults = parse_faults(text); });
  with("labels.json", [&](Text, Text) { run.labels = read_labels(run.path); });
}

/// Removes results of an earlier session: they do not describe the run as it is now.
void forget_results(RunRecord& run) {
  run.went_on = true;
  run.throttling.clear();
  for (RoleRecord& role : run.roles) {
    role.has_summary = false;
    role.summary = lasting_part(role.summary);
    add_up_role(role);
  }
}

RunState state_of(const RunRecord& run) {
  if (run.chief().has_summary) return RunState::ended;
  return in_use(run.path) ? RunState::running : RunState::broken;
}

/// Returns the name of the role whose files are in the run's own folder.
std::string chief_name(const RunRecord& run, const std::vector<RoleFolder>& others) {
  if (!run.summary().workers.empty() && !run.summary().workers.front().role.empty()) {
    return run.summary().workers.front().role;
  }
  return run.planned_workers > 0 || !others.empty() ? "worker:0" : "process";
}

}  // namespace

double RoleRecord::phase_seconds(std::string_view name) const {
  const auto found = std::find_if(phases.begin(), phases.end(), [&](const PhaseTotals& p) { return p.name == name; });
  return found == phases.end() ? 0 : found->seconds;
}

double RoleRecord::all_phase_seconds() const {
  double all = 0;
  for (const PhaseTotals& phase : phases) all += phase.seconds;
  return all;
}

double RoleRecord::peak_memory() const {
  const double seen = std::fmax(resource("peak_rss_bytes").max, resource("rss_bytes").max);
  return known(seen) ? seen : summary.number("peak_memory_bytes");
}

ResourceUse RoleRecord::resource(std::string_view column) const {
  const auto found = resources.find(column);
  return found == resources.end() ? ResourceUse{} : found->second;
}

RunRecord read_run(const std::string& path) {
  if (!exists(path + "/config.yaml")) throw UsageError("'" + path + "' is not a run: it has no config.yaml");
  RunRecord run;
  run.path = path;
  std::error_code ignored;
  const fs::path whole = fs::weakly_canonical(path, ignored);
  run.name = printable(whole.filename().string());
  flatten(read_yaml(path + "/config.yaml", run.warnings), "", run.settings);
  read_cluster(run);
  read_launch(run);
  read_launched(run);
  run.roles.push_back(read_role(path, "", run.warnings));
  const std::vector<RoleFolder> folders = role_folders(path);
  run.roles.front().role = chief_name(run, folders);
  for (const RoleFolder& folder : folders) {
    if (folder.role == run.roles.front().role) continue;
    run.roles.push_back(read_role(folder.path, folder.role, run.warnings));
  }
  if (run.chief().has_summary && is_behind(run.chief())) forget_results(run);
  run.state = state_of(run);
  return run;
}

std::string newest_run(const std::string& runs_dir) {
  std::string newest;
  auto newest_time = fs::file_time_type::min();
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(runs_dir, ignored)) {
    const std::string path = entry.path().string();
    if (!exists(path + "/config.yaml")) continue;
    const auto time =
        std::max({written(path + "/config.yaml"), written(path + "/steps.csv"), written(path + "/summary.json")});
    if (newest.empty() || std::tie(time, path) > std::tie(newest_time, newest)) {
      newest = path;
      newest_time = time;
    }
  }
  if (newest.empty()) throw UsageError("no run in '" + runs_dir + "'; `lockstep train MODEL` starts one");
  return newest;
}

}  // namespace lockstep::records
