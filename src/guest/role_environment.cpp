#include "guest/role_environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace lockstep::guest {
namespace {

using Json = nlohmann::ordered_json;

int members_on(const Places& places, size_t node) {
  const auto& tasks = places.cluster.nodes.at(node).tasks;
  return static_cast<int>(std::count_if(tasks.begin(), tasks.end(), [](const auto& t) { return t.trains(); }));
}

/// Returns the number of members before this one on its host.
int local_rank(const Places& places, const cluster::Task& task) {
  const int rank = std::max(0, places.cluster.spec.member_index(task));
  if (places.one_host) return rank;
  int before = 0;
  for (const cluster::Task& other : places.cluster.nodes.at(node_of(places, task)).tasks) {
    if (other.trains() && places.cluster.spec.member_index(other) < rank) ++before;
  }
  return before;
}

int world_size(const Places& places) { return std::max(1, static_cast<int>(places.cluster.spec.members().size())); }

}  // namespace

size_t node_of(const Places& places, const cluster::Task& task) {
  const auto& nodes = places.cluster.nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (std::find(nodes[i].tasks.begin(), nodes[i].tasks.end(), task) != nodes[i].tasks.end()) return i;
  }
  return 0;
}

std::string tf_config(const Places& places, const cluster::Task& task) {
  Json roles = Json::object();
  for (const cluster::Role role : {cluster::Role::chief, cluster::Role::worker, cluster::Role::ps}) {
    if (!places.cluster.spec.of(role).empty()) roles[std::string(name(role))] = places.cluster.spec.of(role);
  }
  if (roles.empty()) return "";
  return Json{{"cluster", roles}, {"task", {{"type", std::string(name(task.role))}, {"index", task.index}}}}.dump();
}

Values environment_of(const Places& places, const cluster::Task& task) {
  Values variables{{"TF_CONFIG", tf_config(places, task)}, {"LOCKSTEP_HOSTS", places.hosts_file}};
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "MASTER_ADDR",
                           "MASTER_PORT", "TORCHELASTIC_RUN_ID"}) {
    variables.emplace_back(name, "");  // those of this process are not the program's
  }
  const bool alone = places.cluster.nodes.empty();
  if (!alone && !task.trains()) return variables;
  const int rank = alone ? 0 : places.cluster.spec.member_index(task);
  const size_t node = node_of(places, task);
  const int local_size = alone ? 1 : places.one_host ? world_size(places) : members_on(places, node);
  const auto set = [&](std::string_view name, const std::string& value) {
    std::find_if(variables.begin(), variables.end(), [&](const auto& v) { return v.first == name; })->second = value;
  };
  set("RANK", fmt::format("{}", rank));
  set("WORLD_SIZE", fmt::format("{}", world_size(places)));
  set("LOCAL_RANK", fmt::format("{}", alone ? 0 : local_rank(places, task)));
  set("LOCAL_WORLD_SIZE", fmt::format("{}", local_size));
  set("GROUP_RANK", fmt::format("{}", places.one_host ? 0 : node));
  set("MASTER_ADDR", places.master_host);
  set("MASTER_PORT", fmt::format("{}", places.master_port));
  return variables;
}

Values names_of(const Places& places, const cluster::Task& task, const std::string& run_dir) {
  const bool alone = places.cluster.nodes.empty();
  return {{"rank", fmt::format("{}", alone ? 0 : std::max(0, places.cluster.spec.member_index(task)))},
          {"role", alone ? "process" : std::string(name(task.role))},
          {"index", fmt::format("{}", task.index)},
          {"local_rank", fmt::format("{}", alone ? 0 : local_rank(places, task))},
          {"workers", fmt::format("{}", world_size(places))},
          {"master", fmt::format("{}:{}", places.master_host, places.master_port)},
          {"master_addr", places.master_host},
          {"master_port", fmt::format("{}", places.master_port)},
          {"hosts", places.hosts_file},
          {"run_dir", run_dir}};
}

std::string hosts_text(const Places& places) {
  if (places.cluster.nodes.empty()) return "127.0.0.1 slots=1\n";
  if (places.one_host) return fmt::format("127.0.0.1 slots={}\n", world_size(places));
  std::string text;
  for (size_t i = 0; i < places.cluster.nodes.size(); ++i) {
    const int slots = members_on(places, i);
    if (slots > 0) text += fmt::format("{} slots={}\n", places.cluster.nodes[i].host, slots);
  }
  return text;
}

}  // namespace lockstep::guest
