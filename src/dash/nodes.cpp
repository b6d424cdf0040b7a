#include "dash/nodes.h"

#include <algorithm>
#include <cmath>

#include "base/address.h"
#include "base/file.h"
#include "base/host.h"
#include "base/yaml_tree.h"
#include "dash/json_values.h"
#include "lockstep/error.h"

namespace lockstep::dash {
namespace {

using records::known;
using records::kUnknown;
using records::NodeRecord;

constexpr uint64_t kLargestFile = uint64_t{1} << 22;
constexpr size_t kHistory = 60;

/// Returns the text of a file; empty if there is none.
std::string text_of(const std::string& path) {
  try {
    const std::vector<uint8_t> bytes = base::read_file(path, kLargestFile);
    return {bytes.begin(), bytes.end()};
  } catch (const Error&) {
    return "";
  }
}

NodeRecord& node_called(std::vector<NodeRecord>& nodes, const std::string& name) {
  const auto found = std::find_if(nodes.begin(), nodes.end(), [&](const NodeRecord& n) { return n.name == name; });
  if (found != nodes.end()) return *found;
  NodeRecord& made = nodes.emplace_back();
  made.name = name;
  return made;
}

/// Returns the node of an address: "10.0.0.2:7001" is on node 10.0.0.2; loopback is this machine.
std::string node_at(const std::string& address) {
  try {
    const std::string host = base::parse_address(address, 0).host;
    return base::is_loopback(host) ? base::host_name() : host;
  } catch (const Error&) {
    return base::host_name();
  }
}

std::vector<NodeRecord> cluster_nodes(const std::string& run) {
  std::vector<NodeRecord> nodes;
  base::YamlNode cluster;
  try {
    cluster = base::parse_yaml(text_of(run + "/cluster.yaml"), "cluster.yaml");
  } catch (const Error&) {
    return nodes;
  }
  for (const char* kind : {"chief", "worker", "ps", "evaluator"}) {
    const base::YamlNode* list = cluster.find(kind);
    if (list == nullptr || !list->is(base::YamlNode::Kind::list)) continue;
    for (size_t i = 0; i < list->items.size(); ++i) {
      node_called(nodes, node_at(list->items[i].text)).roles.push_back(std::string(kind) + ":" + std::to_string(i));
    }
  }
  return nodes;
}

bool has_role(const std::vector<NodeRecord>& nodes, const std::string& role) {
  return std::any_of(nodes.begin(), nodes.end(), [&](const NodeRecord& node) {
    return std::find(node.roles.begin(), node.roles.end(), role) != node.roles.end();
  });
}

ordered_json history(const records::RoleRecord& role, const char* column) {
  const std::span<const double> values = role.monitor.column(column);
  ordered_json list = ordered_json::array();
  for (size_t i = values.size() > kHistory ? values.size() - kHistory : 0; i < values.size(); ++i) {
    list.push_back(number(values[i]));
  }
  return list;
}

ordered_json role_json(const records::RunRecord& run, const std::string& name, double now) {
  const records::RoleRecord* role = run.role(name);
  ordered_json json{{"role", name}, {"state", role == nullptr ? "starting" : role_state(run, *role, now)}};
  if (role == nullptr) return json;
  json["quiet"] = number(now - role->monitor.last("time"));
  json["cpu_percent"] = number(role->monitor.last("cpu_percent"));
  json["memory"] = number(role->monitor.last("rss_bytes"));
  json["received"] = number(role->monitor.last("wire_received"));
  json["sent"] = number(role->monitor.last("wire_sent"));
  json["step"] = number(role->serves() ? role->phase_log.last("step") : role->steps.last("step"));
  json["loss"] = number(role->steps.last("loss"));
  return json;
}

/// Returns the role of the node with the newest monitor sample: it tells what the node uses.
const records::RoleRecord* newest(const records::RunRecord& run, const NodeRecord& node) {
  const records::RoleRecord* best = nullptr;
  for (const std::string& name : node.roles) {
    const records::RoleRecord* role = run.role(name);
    if (role == nullptr || role->monitor.empty()) continue;
    if (best == nullptr || role->monitor.last("time") > best->monitor.last("time")) best = role;
  }
  return best;
}

/// Returns the traffic of the node's links; if all roles are on one machine, the traffic between the roles.
double traffic(const records::RunRecord& run, const NodeRecord& node, const std::string& way) {
  const records::RoleRecord* role = newest(run, node);
  const double links = role == nullptr ? kUnknown : role->monitor.last("net_" + way);
  double wire = 0;
  for (const std::string& name : node.roles) {
    const records::RoleRecord* one = run.role(name);
    const double part = one == nullptr ? kUnknown : one->monitor.last("wire_" + way);
    if (known(part)) wire += part;
  }
  return std::fmax(links, wire);
}

std::string worst(const std::vector<std::string>& states) {
  for (const char* state : {"lost", "silent", "starting", "alive"}) {
    if (std::find(states.begin(), states.end(), state) != states.end()) return state;
  }
  return "ended";
}

/// Returns whether the scheduled faults cut off the node's link now.
bool is_cut_off(const records::RunRecord& run, const std::string& node) {
  bool cut = false;
  for (const records::FaultRecord& fault : run.faults) {
    if (fault.kind == "cut" && fault.target == node) cut = !fault.ended;
  }
  return cut;
}

ordered_json node_json(const records::RunRecord& run, const NodeRecord& node, double now) {
  ordered_json json{{"node", node.name},
                    {"address", node.address},
                    {"cores", number(node.cores)},
                    {"memory_limit", number(node.memory_bytes > 0 ? node.memory_bytes : kUnknown)}};
  std::vector<std::string> states;
  json["roles"] = ordered_json::array();
  for (const std::string& name : node.roles) {
    json["roles"].push_back(role_json(run, name, now));
    states.push_back(json["roles"].back()["state"].get<std::string>());
  }
  json["state"] = is_cut_off(run, node.name) ? "cut" : worst(states);
  const records::RoleRecord* role = newest(run, node);
  json["cpu_percent"] = number(role == nullptr ? kUnknown : role->monitor.last("node_cpu_percent"));
  json["memory"] = number(role == nullptr ? kUnknown : role->monitor.last("node_memory_used"));
  json["received"] = number(traffic(run, node, "received"));
  json["sent"] = number(traffic(run, node, "sent"));
  json["history"] = role == nullptr ? ordered_json::array() : history(*role, "node_cpu_percent");
  return json;
}

}  // namespace

std::vector<NodeRecord> nodes_of(const records::RunRecord& run) {
  std::vector<NodeRecord> nodes = run.nodes;
  if (nodes.empty()) nodes = cluster_nodes(run.path);
  for (const records::RoleRecord& role : run.roles) {
    if (has_role(nodes, role.role)) continue;
    node_called(nodes, role.host.empty() ? base::host_name() : role.host).roles.push_back(role.role);
  }
  return nodes;
}

std::string role_state(const records::RunRecord& run, const records::RoleRecord& role, double now) {
  const std::string reason = run.summary().text("stop_reason");
  const bool early = reason == "interrupted" || run.failed();
  if (run.state == records::RunState::ended) return early ? "stopped" : "ended";
  if (role.has_summary && run.state != records::RunState::running) return "ended";
  if (run.state == records::RunState::broken) return "lost";
  if (role.has_summary) return "ended";
  const double every = run.number_setting("monitor_every");
  if (every == 0) return "alive";  // without a monitor
  const double last = role.monitor.last("time");
  if (!known(last)) return "starting";
  const double patience = std::max(5.0, 4 * (known(every) ? every : 0.5));
  return now - last > patience ? "silent" : "alive";
}

std::string nodes_json(const std::string& id, const records::RunRecord& run, double now) {
  ordered_json json{{"run", id},
                    {"name", run.name},
                    {"model", run.model()},
                    {"dataset", run.dataset()},
                    {"seconds", number(run.seconds())},
                    {"steps", number(run.steps())}};
  json["nodes"] = ordered_json::array();
  for (const NodeRecord& node : nodes_of(run)) json["nodes"].push_back(node_json(run, node, now));
  json["faults"] = ordered_json::array();
  for (const records::FaultRecord& fault : run.faults) {
    json["faults"].push_back({{"seconds", number(fault.seconds)}, {"fault", fault.text}});
  }
  return dumped(json);
}

}  // namespace lockstep::dash
