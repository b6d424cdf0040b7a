#include "cluster/cluster_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/address.h"
#include "base/file.h"
#include "base/suggest.h"
#include "base/yaml_tree.h"
#include "lockstep/error.h"

namespace lockstep::cluster {
namespace {

using base::reject;
using base::YamlNode;
using NodeKind = base::YamlNode::Kind;

constexpr size_t kMostNodes = 10000;
const std::vector<std::string> kListKeys{"chief", "worker", "ps", "evaluator", "master"};
const std::vector<std::string> kAllKeys{"chief", "worker", "ps", "evaluator", "nodes", "layout", "hosts", "port"};
const std::vector<std::string> kNodeKeys{"host", "roles", "ssh", "dir", "port"};

/// Reads one file: keeps its name for errors, and the node of each task.
class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  ClusterFile read(const YamlNode& root) {
    if (root.is(NodeKind::null))
      throw UsageError(file_ + ": is empty; a cluster file has `worker:`, `nodes:` or `layout:`");
    if (!root.is(NodeKind::map)) {
      reject(file_, root, "a cluster file has keys such as `worker:` or `nodes:`, not " + describe(root));
    }
    check_form(root);
    if (const YamlNode* nodes = root.find("nodes")) {
      read_nodes(*nodes, root.find("port"));
    } else if (const YamlNode* layout = root.find("layout")) {
      read_layout(*layout, root);
    } else {
      read_lists(root);
    }
    check_whole();
    return std::move(result_);
  }

 private:
  /// Checks that all keys belong to one form.
  void check_form(const YamlNode& root) const {
    const char* form = "lists of addresses";
    std::vector<std::string> allowed = kListKeys;
    if (root.find("nodes") != nullptr) {
      form = "`nodes:`";
      allowed = {"nodes", "port"};
    } else if (root.find("layout") != nullptr || root.find("hosts") != nullptr) {
      form = "`layout:` and `hosts:`";
      allowed = {"layout", "hosts", "port"};
    }
    for (const YamlNode& key : root.keys) {
      if (std::find(allowed.begin(), allowed.end(), key.text) != allowed.end()) continue;
      const bool known = std::find(kAllKeys.begin(), kAllKeys.end(), key.text) != kAllKeys.end();
      if (known) reject(file_, key, fmt::format("key '{}' does not go with {}", key.text, form));
      reject(file_, key,
             fmt::format("unknown key '{}'{}", base::shown(key.text), base::hint(base::shown(key.text), kAllKeys)));
    }
  }

  void read_lists(const YamlNode& root) {
    for (size_t i = 0; i < root.keys.size(); ++i) {
      const Role role = *find_role(root.keys[i].text);
      if (!result_.spec.of(role).empty()) reject(file_, root.keys[i], "'chief' and 'master' are one role");
      read_list(role, root.keys[i], root.items[i]);
    }
  }

  void read_list(Role role, const YamlNode& key, const YamlNode& list) {
    if (list.is(NodeKind::null)) return;
    if (!list.is(NodeKind::list)) {
      reject(file_, key, fmt::format("{}: {} is not a list of addresses, [HOST:PORT, ...]", key.text, describe(list)));
    }
    for (const YamlNode& item : list.items) {
      const std::string where = fmt::format("{}[{}]", key.text, result_.spec.of(role).size());
      const std::string address = text_of(item, where, "an address, HOST:PORT");
      try {
        add(node_of(base::parse_address(address).host), role, address, item, where);
      } catch (const UsageError& error) {
        reject(file_, item, where + ": " + error.what());
      }
    }
  }

  void read_nodes(const YamlNode& nodes, const YamlNode* port) {
    if (!nodes.is(NodeKind::list)) reject(file_, nodes, "nodes: " + describe(nodes) + " is not a list of nodes");
    const int first = port == nullptr ? kFirstPort : port_of(*port, "port");
    for (size_t i = 0; i < nodes.items.size(); ++i) read_node(nodes.items[i], fmt::format("nodes[{}]", i), first);
  }

  void read_node(const YamlNode& item, const std::string& where, int first_port) {
    if (!item.is(NodeKind::map))
      reject(file_, item, where + ": " + describe(item) + " is not {host: ..., roles: [...]}");
    for (const YamlNode& key : item.keys) {
      if (std::find(kNodeKeys.begin(), kNodeKeys.end(), key.text) != kNodeKeys.end()) continue;
      const std::string hint = base::hint(base::shown(key.text), kNodeKeys);
      reject(file_, key, fmt::format("{}: unknown key '{}'{}", where, base::shown(key.text), hint));
    }
    const YamlNode* host = item.find("host");
    const YamlNode* roles = item.find("roles");
    if (host == nullptr || roles == nullptr) {
      reject(file_, item, fmt::format("{}: has no '{}'", where, host == nullptr ? "host" : "roles"));
    }
    Node& node = new_node(host_of(*host, where + ".host"));
    if (const YamlNode* ssh = item.find("ssh")) node.ssh = ssh_of(*ssh, where + ".ssh");
    if (const YamlNode* dir = item.find("dir")) node.dir = text_of(*dir, where + ".dir", "a folder");
    if (const YamlNode* port = item.find("port")) next_port_[node.host] = port_of(*port, where + ".port");
    next_port_.try_emplace(node.host, first_port);
    const std::vector<YamlNode> list = roles->is(NodeKind::list) ? roles->items : std::vector<YamlNode>{*roles};
    if (list.empty()) reject(file_, *roles, where + ".roles: is empty; it takes chief, worker, ps, evaluator");
    for (const YamlNode& role : list) add_at_next_port(node, role_of(role, where + ".roles"), role, where);
  }

  void read_layout(const YamlNode& layout, const YamlNode& root) {
    const YamlNode* hosts = root.find("hosts");
    if (hosts == nullptr) reject(file_, layout, "layout: needs `hosts: [...]`, one for each group");
    if (!hosts->is(NodeKind::list)) reject(file_, *hosts, "hosts: " + describe(*hosts) + " is not a list of hosts");
    std::vector<std::vector<Role>> groups;
    try {
      groups = parse_layout(text_of(layout, "layout", "a layout such as PW-W"));
    } catch (const UsageError& error) {
      reject(file_, layout, std::string("layout: ") + error.what());
    }
    if (groups.size() != hosts->items.size()) {
      reject(file_, *hosts,
             fmt::format("hosts: has {} and layout '{}' has {} groups; each group is a host", hosts->items.size(),
                         base::shown(layout.text), groups.size()));
    }
    const YamlNode* port = root.find("port");
    const int first = port == nullptr ? kFirstPort : port_of(*port, "port");
    for (size_t i = 0; i < groups.size(); ++i) {
      const std::string where = fmt::format("hosts[{}]", i);
      Node& node = new_node(host_of(hosts->items[i], where));
      next_port_.try_emplace(node.host, first);
      for (const Role role : groups[i]) add_at_next_port(node, role, hosts->items[i], where);
    }
  }

  void add_at_next_port(Node& node, Role role, const YamlNode& at, const std::string& where) {
    const int port = next_port_[node.host]++;
    if (port > 65535) reject(file_, at, where + ": there is no port left after 65535");
    add(node, role, base::join_address(node.host, port), at, where);
  }

  void add(Node& node, Role role, const std::string& address, const YamlNode& at, const std::string& where) {
    std::vector<std::string>& list = result_.spec.of(role);
    node.tasks.push_back({role, static_cast<int>(list.size())});
    places_[node.tasks.back().str()] = {at, where};
    list.push_back(address);
  }

  Node& new_node(const std::string& host) {
    if (result_.nodes.size() >= kMostNodes)
      throw UsageError(fmt::format("{}: has more than {} nodes", file_, kMostNodes));
    return result_.nodes.emplace_back(Node{host, host, "", {}});
  }

  /// Returns the node with the host of an address.
  Node& node_of(const std::string& host) {
    const auto [place, added] = node_places_.try_emplace(host, result_.nodes.size());
    return added ? new_node(host) : result_.nodes[place->second];
  }

  void check_whole() const {
    const std::optional<Problem> problem = find_problem(result_.spec);
    if (!problem) return;
    if (!problem->task) throw UsageError(file_ + ": " + problem->text);
    const auto& [at, where] = places_.at(problem->task->str());
    reject(file_, at, where + ": " + problem->text);
  }

  std::string text_of(const YamlNode& node, const std::string& where, const char* takes) const {
    if (node.is(NodeKind::scalar) && !node.text.empty()) return node.text;
    reject(file_, node, fmt::format("{}: {} is not {}", where, describe(node), takes));
  }

  std::string host_of(const YamlNode& node, const std::string& where) const {
    std::string host = text_of(node, where, "a host");
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
    if (base::is_host(host)) return host;
    reject(
        file_, node,
        fmt::format("{}: '{}' is not a host; it takes a name or an address, without port", where, base::shown(host)));
  }

  /// Returns a destination for ssh, never one that ssh would read as an option.
  std::string ssh_of(const YamlNode& node, const std::string& where) const {
    const std::string text = text_of(node, where, "user@host");
    const auto odd = [](unsigned char c) { return c <= ' ' || c == 0x7F; };
    if (text.front() != '-' && std::none_of(text.begin(), text.end(), odd)) return text;
    reject(file_, node, fmt::format("{}: '{}' is not user@host", where, base::shown(text)));
  }

  int port_of(const YamlNode& node, const std::string& where) const {
    const std::string& text = node.text;
    int port = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
    const bool whole = node.is(NodeKind::scalar) && error == std::errc() && end == text.data() + text.size();
    if (whole && port >= 1 && port <= 65535) return port;
    reject(file_, node, fmt::format("{}: {} is not a port from 1 to 65535", where, describe(node)));
  }

  Role role_of(const YamlNode& node, const std::string& where) const {
    const std::string text = text_of(node, where, "a role");
    const std::optional<Role> role = find_role(text);
    if (!role) reject(file_, node, fmt::format("{}: '{}' is not a role{}", where, base::shown(text), role_hint(text)));
    return *role;
  }

  struct Place {
    YamlNode at;
    std::string where;
  };

  const std::string& file_;
  ClusterFile result_;
  std::map<std::string, Place> places_;
  std::map<std::string, size_t> node_places_;
  std::map<std::string, int> next_port_;
};

}  // namespace

ClusterFile parse_cluster_file(const std::string& text, const std::string& file) {
  return Reader(file).read(base::parse_yaml(text, file));
}

ClusterFile load_cluster_file(const std::string& path) {
  const std::vector<uint8_t> bytes = base::read_file(path, base::kLargestYaml);
  return parse_cluster_file(std::string(bytes.begin(), bytes.end()), path);
}

std::vector<std::vector<Role>> parse_layout(const std::string& text) {
  constexpr size_t kLongest = 4096;
  const auto wrong = [&](const char* what) {
    throw UsageError(
        fmt::format("'{}' {}; a layout is groups of P (ps), W (worker), C (chief), E (evaluator) with '-' "
                    "between them, as in PS-W-W, PW-PW or PW-W",
                    base::shown(text), what));
  };
  if (text.size() > kLongest) wrong("is too long");
  std::vector<std::vector<Role>> groups(1);
  for (size_t i = 0; i < text.size(); ++i) {
    const char letter = text[i];
    if (letter == 'P') {
      groups.back().push_back(Role::ps);
      if (i + 1 < text.size() && text[i + 1] == 'S') ++i;
    } else if (letter == 'W') {
      groups.back().push_back(Role::worker);
    } else if (letter == 'C') {
      groups.back().push_back(Role::chief);
    } else if (letter == 'E') {
      groups.back().push_back(Role::evaluator);
    } else if (letter == '-' && !groups.back().empty()) {
      groups.emplace_back();
    } else {
      wrong(letter == '-' ? "has an empty group" : "has a letter that is not a role");
    }
  }
  if (groups.back().empty()) wrong(text.empty() ? "is empty" : "has an empty group");
  return groups;
}

}  // namespace lockstep::cluster
