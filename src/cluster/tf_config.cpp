#include "cluster/tf_config.h"

#include <fmt/format.h>

#include <charconv>
#include <set>
#include <string_view>
#include <vector>

#include "base/address.h"
#include "base/json.h"
#include "lockstep/error.h"

namespace lockstep::cluster {
namespace {

using Json = nlohmann::json;

constexpr size_t kLargestText = size_t{1} << 20;
constexpr size_t kShownOfVariable = 60;

[[noreturn]] void reject(const std::string& key, const std::string& what) {
  throw UsageError(fmt::format("TF_CONFIG: {}{}{}", key, key.empty() ? "" : ": ", what));
}

/// Returns the value as written, shortened, on one line.
std::string shown(const Json& value) {
  const std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() > kShownOfVariable ? text.substr(0, kShownOfVariable) + "..." : text;
}

/// Refuses an error that the parser ignores: a key twice in one object.
class Guard {
 public:
  bool operator()(Json::parse_event_t event, const Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event == Json::parse_event_t::key && !keys_.back().insert(parsed.get<std::string>()).second) {
      reject("", fmt::format("key {} occurs twice in one object", shown(parsed)));
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> keys_;
};

Json parse_json(const std::string& text) {
  if (text.size() > kLargestText) {
    reject("", fmt::format("has {} bytes; at most {} are allowed", text.size(), kLargestText));
  }
  Guard guard;
  try {
    return base::parse_json(text, "TF_CONFIG", [&](int /*depth*/, Json::parse_event_t event, Json& parsed) {
      return guard(event, parsed);
    });
  } catch (const DataError& error) {
    throw UsageError(error.what());
  }
}

/// Returns a whole number from 0 on, given as number or text; -1 for everything else.
int whole_number(const Json& value) {
  int number = -1;
  if (value.is_number_unsigned() && value.get<uint64_t>() < uint64_t{kMostTasks}) return value.get<int>();
  if (!value.is_string()) return -1;
  const auto& text = value.get_ref<const std::string&>();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() && text[0] != '-';
  return whole && number < kMostTasks ? number : -1;
}

std::string checked_address(const Json& value, const std::string& key) {
  if (!value.is_string()) reject(key, shown(value) + " is not an address; it takes text, \"HOST:PORT\"");
  const auto& text = value.get_ref<const std::string&>();
  try {
    base::parse_address(text);
  } catch (const UsageError& error) {
    reject(key, error.what());
  }
  return text;
}

std::vector<std::string> addresses_from_list(const Json& list, const std::string& key) {
  std::vector<std::string> addresses;
  for (const Json& item : list) {
    addresses.push_back(checked_address(item, fmt::format("{}[{}]", key, addresses.size())));
  }
  return addresses;
}

/// Reads {"1": "h2:p"}; the other addresses stay unknown.
std::vector<std::string> addresses_from_map(const Json& map, const std::string& key) {
  std::vector<std::string> addresses;
  for (const auto& [index_text, value] : map.items()) {
    const std::string where = fmt::format("{}[{}]", key, index_text.substr(0, kShownOfVariable));
    const int index = whole_number(Json(index_text));
    if (index < 0) reject(where, fmt::format("an index is a whole number from 0 to {}", kMostTasks - 1));
    const auto place = static_cast<size_t>(index);
    if (place >= addresses.size()) addresses.resize(place + 1);
    if (!addresses[place].empty()) reject(where, "occurs twice");
    addresses[place] = checked_address(value, where);
  }
  return addresses;
}

/// Returns a task's key in the text, for errors about the whole spec.
std::string key_of(const Json& cluster, const std::string& root, const Task& task) {
  const bool old_name = task.role == Role::chief && cluster.contains("master");
  return fmt::format("{}.{}[{}]", root, old_name ? "master" : name(task.role), task.index);
}

void read_role(Spec& spec, const std::string& role_text, const Json& value, const std::string& root) {
  const std::string key = root + "." + role_text.substr(0, kShownOfVariable);
  const std::optional<Role> role = find_role(role_text);
  if (!role) reject(key, "is not a role" + role_hint(role_text));
  if (value.is_null()) return;
  if (!spec.of(*role).empty()) reject(key, "a cluster has one chief, and 'chief' and 'master' both name one");
  if (value.is_array()) {
    spec.of(*role) = addresses_from_list(value, key);
  } else if (value.is_object()) {
    spec.of(*role) = addresses_from_map(value, key);
    spec.partial = true;
  } else {
    reject(key, shown(value) + " is not a list of addresses; it takes [\"HOST:PORT\", ...]");
  }
}

Spec read_cluster(const Json& cluster, const std::string& root) {
  Spec spec;
  if (!cluster.is_object()) reject(root, shown(cluster) + " is not an object; it takes {\"worker\": [...], ...}");
  for (const auto& [role, value] : cluster.items()) read_role(spec, role, value, root);
  spec.partial = spec.partial || root == "sparseCluster";
  for (size_t i = 0; i < spec.ps.size(); ++i) {
    if (spec.ps[i].empty()) reject(fmt::format("{}.ps[{}]", root, i), "has no address; all ps must be known to all");
  }
  if (const std::optional<Problem> problem = find_problem(spec)) {
    reject(problem->task ? key_of(cluster, root, *problem->task) : root, problem->text);
  }
  return spec;
}

int read_index(const Json& task, Role role, size_t count) {
  if (!task.contains("index") || task["index"].is_null()) {
    if (count > 1) reject("task.index", fmt::format("is missing; it takes 0 to {}", count - 1));
    return 0;
  }
  const int index = whole_number(task["index"]);
  if (index >= 0 && static_cast<size_t>(index) < count) return index;
  reject("task.index",
         fmt::format("{} is out of range; cluster.{} has {} address{}, it takes {}", shown(task["index"]), name(role),
                     count, count == 1 ? "" : "es", count == 1 ? "0" : fmt::format("0 to {}", count - 1)));
}

Task read_task(const Json& task, Spec& spec, bool sparse) {
  if (!task.is_object()) reject("task", shown(task) + R"( is not an object; it takes {"type": "worker", "index": 1})");
  if (!task.contains("type")) reject("task.type", "is missing; it takes chief, worker, ps or evaluator");
  const Json& type = task["type"];
  const std::optional<Role> role = type.is_string() ? find_role(type.get_ref<const std::string&>()) : std::nullopt;
  if (!role) {
    reject("task.type", shown(type) + " is not a role" + role_hint(type.is_string() ? type.get<std::string>() : ""));
  }
  // TensorFlow's Estimators leave the evaluator out of the cluster: it does not listen.
  if (role == Role::evaluator && spec.evaluator.empty()) spec.evaluator.emplace_back();
  const size_t count = spec.of(*role).size();
  if (count == 0) {
    reject("task.type", fmt::format("{} is not in the cluster: cluster.{} is missing or empty", shown(type),
                                    type.get_ref<const std::string&>()));
  }
  if (sparse && role == Role::ps && count == 1 && task.contains("index") && whole_number(task["index"]) > 0) {
    reject("task.index", fmt::format("ps:{} needs the address of ps:0, which coordinates, and sparseCluster.ps has "
                                     "only one; run one ps, or give the whole cluster",
                                     whole_number(task["index"])));
  }
  return {*role, read_index(task, *role, count)};
}

}  // namespace

std::optional<TfConfig> parse_tf_config(const std::string& text) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) return std::nullopt;
  const Json root = parse_json(text);
  if (!root.is_object()) reject("", shown(root) + " is not an object; it takes {\"cluster\": ..., \"task\": ...}");
  const bool sparse = !root.contains("cluster") && root.contains("sparseCluster");
  const std::string key = sparse ? "sparseCluster" : "cluster";
  if (!root.contains(key) || root[key].is_null() || (root[key].is_object() && root[key].empty())) return std::nullopt;

  TfConfig config{read_cluster(root[key], key), std::nullopt};
  if (root.contains("task") && !root["task"].is_null() && !root["task"].empty()) {
    config.task = read_task(root["task"], config.spec, sparse);
  }
  // This process's own task needs an address.
  if (config.task && config.task->role != Role::evaluator && config.spec.address(*config.task).empty()) {
    reject("task.index", fmt::format("{}: cluster has no address for {}", config.task->index, config.task->str()));
  }
  return config;
}

}  // namespace lockstep::cluster
