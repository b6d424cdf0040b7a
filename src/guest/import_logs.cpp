// Makes a run's folder from logs of other monitors.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/yaml_tree.h"
#include "emulate/quantities.h"
#include "guest/guest_run.h"
#include "guest/run_folder.h"
#include "guest/usage_log.h"
#include "lockstep/error.h"

namespace lockstep::guest {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the hosts of the logs; a log that does not say, or says the same as another, has its role's name.
std::vector<std::string> hosts_of(const std::vector<LogSource>& sources, const std::vector<UsageLog>& logs) {
  std::vector<std::string> hosts;
  std::set<std::string> taken;
  for (size_t i = 0; i < logs.size(); ++i) {
    const bool own = !logs[i].host.empty() && taken.insert(logs[i].host).second;
    hosts.push_back(own ? logs[i].host : sources[i].role);
  }
  return hosts;
}

/// Returns the seconds since 1970 at which a log begins; unknown if it has no times and counts from its own start.
double beginning_of(const UsageLog& log) {
  constexpr double kYears = 1e8;
  return log.times.front() > kYears ? log.times.front() : records::kUnknown;
}

void check_roles(const std::vector<LogSource>& sources) {
  std::set<std::string> roles;
  for (const LogSource& source : sources) {
    if (!roles.insert(source.role).second) throw UsageError(fmt::format("--log: {} has two logs", source.role));
    if (source.role == "process" && sources.size() > 1) {
      throw UsageError("--log: a run of `process` has one log; name the roles of a cluster worker:0, ps:0 and so on");
    }
  }
}

}  // namespace

std::string LogSource::text() const {
  return fmt::format("{}={}{}", role, file, every > 0 ? fmt::format("@{}", every) : "");
}

LogSource parse_log(std::string_view text) {
  const auto fail = [&](const std::string& what) {
    throw UsageError(fmt::format("log '{}': {}", base::shown(text), what));
  };
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals + 1 == text.size()) {
    fail("it takes ROLE=FILE, such as worker:0=dstat.csv, or ROLE=FILE@SECONDS");
  }
  LogSource source{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
  if (source.role != "process") source.role = cluster::parse_task(source.role).str();
  const size_t at = source.file.rfind('@');
  if (at == std::string::npos) return source;
  const std::optional<double> every = emulate::parse_seconds(std::string_view(source.file).substr(at + 1));
  if (!every || !(*every > 0)) return source;  // a name with an @
  source.every = *every;
  source.file.resize(at);
  if (source.file.empty()) fail("has no file");
  return source;
}

void import_logs(const GuestOptions& options) {
  check_is_new(options.run_dir);
  check_roles(options.logs);
  std::vector<UsageLog> logs;
  for (const LogSource& source : options.logs) logs.push_back(read_usage_log(source.file, source.every));
  const std::vector<std::string> hosts = hosts_of(options.logs, logs);
  RunResult result;
  result.run_dir = options.run_dir;
  result.settings = options.settings;
  Json nodes = Json::array();
  for (size_t i = 0; i < logs.size(); ++i) {
    const LogSource& source = options.logs[i];
    result.command.push_back(source.text());
    RoleResult role;
    role.role = source.role;
    role.host = hosts[i];
    role.trains = source.role == "process" || cluster::parse_task(source.role).trains();
    role.folder = i == 0 ? options.run_dir : options.run_dir + "/" + cluster::parse_task(source.role).folder();
    role.finished = logs[i].times.back() - logs[i].times.front();
    result.seconds = std::max(result.seconds, role.finished);
    nodes.push_back(Json{{"node", hosts[i]}, {"roles", {source.role}}});
    base::make_directories(role.folder);
    base::write_whole_file(role.folder + "/monitor.csv", monitor_csv(logs[i]));
    result.roles.push_back(std::move(role));
  }
  result.roles.front().figures = join(read_files(options.figures, beginning_of(logs.front())));
  write_config(result);
  // The interfaces of these nodes count the traffic between roles.
  base::write_whole_file(options.run_dir + "/nodes.json",
                         nodes.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  write_results(result);
}

}  // namespace lockstep::guest
