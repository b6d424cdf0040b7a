#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

#include "base/suggest.h"
#include "emulate/claims.h"
#include "emulate/cluster.h"
#include "emulate/quantities.h"
#include "lockstep/error.h"

namespace lockstep::emulate {
namespace {

using Read = std::optional<double> (*)(std::string_view text);

std::optional<double> parse_cores(std::string_view text) { return parse_quantity(text, {{"", 1}}); }

std::optional<double> parse_bytes(std::string_view text) {
  return parse_quantity(text, {{"b", 1},
                               {"kb", 1e3},
                               {"mb", 1e6},
                               {"gb", 1e9},
                               {"kib", 1024},
                               {"mib", 1024.0 * 1024},
                               {"gib", 1024.0 * 1024 * 1024}});
}

std::optional<double> parse_rate(std::string_view text) {
  return parse_quantity(text, {{"bit", 1}, {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}});
}

/// One setting of a node.
struct Key {
  std::string_view name;
  double NodeSpec::*member;
  Read read;
  double least;
  double most;
  std::string_view allowed;
};

constexpr std::array<Key, 5> kKeys{{
    {"cores", &NodeSpec::cores, parse_cores, 0.01, 1024, "0.01 to 1024, as 0.5"},
    {"memory", &NodeSpec::memory_bytes, parse_bytes, 16e6, 1e15, "from 16MB, as 512MB, 2GB or 1GiB"},
    {"rate", &NodeSpec::rate, parse_rate, 64e3, 1e12, "from 64kbit to 1000gbit, as 100mbit or 1gbit"},
    {"delay", &NodeSpec::delay_seconds, parse_seconds, 0, 10, "up to 10s, as 1ms"},
    {"loss", &NodeSpec::loss, parse_share, 0, 0.9, "up to 90%, as 0.1%"},
}};

[[noreturn]] void refuse(std::string_view piece, const std::string& why) {
  throw UsageError(fmt::format("emulate: '{}': {}", piece, why));
}

const Key& find_key(std::string_view name, std::string_view piece) {
  const auto found = std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& key) { return key.name == name; });
  if (found != kKeys.end()) return *found;
  std::vector<std::string> names;
  for (const Key& key : kKeys) names.emplace_back(key.name);
  refuse(piece, fmt::format("no '{}' of a node{}; cores, memory, rate, delay and loss can be given", name,
                            base::hint(std::string(name), names)));
}

/// Returns the index of "node2" among `nodes`.
size_t find_node(std::string_view name, std::string_view piece, size_t nodes) {
  size_t number = 0;
  const bool named = name.starts_with("node");
  const char* end = name.data() + name.size();
  if (!named || std::from_chars(name.data() + 4, end, number).ptr != end || number < 1 || number > nodes) {
    refuse(piece, fmt::format("no node '{}'; {}", name,
                              nodes == 1 ? "node1 is the only one" : fmt::format("there are node1 to node{}", nodes)));
  }
  return number - 1;
}

struct Setting {
  std::optional<size_t> node;  ///< none: all
  const Key* key = nullptr;
  double value = 0;
};

Setting parse_setting(std::string_view piece, size_t nodes) {
  const size_t equals = piece.find('=');
  if (equals == std::string_view::npos)
    refuse(piece, "no value; as cores=0.5 or node2.cores=0.25, with commas between");
  std::string_view name = trimmed(piece.substr(0, equals));
  const std::string_view text = trimmed(piece.substr(equals + 1));
  Setting setting;
  if (const size_t dot = name.find('.'); dot != std::string_view::npos) {
    setting.node = find_node(name.substr(0, dot), piece, nodes);
    name = name.substr(dot + 1);
  }
  setting.key = &find_key(name, piece);
  const std::optional<double> value = setting.key->read(text);
  const bool fits = value && *value >= setting.key->least && *value <= setting.key->most;
  if (!fits) refuse(piece, fmt::format("{} is not allowed; {}", text.empty() ? "nothing" : text, setting.key->allowed));
  setting.value = *value;
  return setting;
}

std::string number_text(double value) {
  std::string text = fmt::format("{:.3f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

/// Returns "3 nodes x 0.75", or "0.75 + 0.5" if they differ.
std::string sum_text(const std::vector<double>& parts, const std::string& unit) {
  const auto differs = [&](double part) { return part != parts.front(); };
  if (parts.size() > 1 && std::none_of(parts.begin(), parts.end(), differs)) {
    return fmt::format("{} nodes x {}{}", parts.size(), number_text(parts.front()), unit);
  }
  std::string text;
  for (const double part : parts) text += (text.empty() ? "" : " + ") + number_text(part);
  return text + unit;
}

constexpr double kRounding = 1e-9;
constexpr double kGigabyte = 1e9;

double sum_of(const std::vector<double>& parts) { return std::accumulate(parts.begin(), parts.end(), 0.0); }

/// Returns one setting of all nodes, in that unit, without nodes that do not set it.
std::vector<double> given_of(const std::vector<NodeSpec>& nodes, double NodeSpec::*member, double unit = 1) {
  std::vector<double> given;
  for (const NodeSpec& node : nodes) {
    if (node.*member > 0) given.push_back(node.*member / unit);
  }
  return given;
}

/// Returns "a node of 0.5 cores" or "3 nodes x 0.5 cores = 1.5 cores".
std::string need_text(const std::vector<double>& parts, const std::string& unit) {
  if (parts.size() == 1) return fmt::format("a node of {}{}", number_text(parts.front()), unit);
  return fmt::format("{} = {}{}", sum_text(parts, unit), number_text(sum_of(parts)), unit);
}

void check_sum(const std::vector<double>& parts, double host, const std::string& unit) {
  if (sum_of(parts) <= host * (1 + kRounding)) return;
  throw UsageError(fmt::format("emulate: {}, and this machine has {}", need_text(parts, unit), number_text(host)));
}

/// Share of a resource that a running cluster has.
struct Taken {
  const Claim* claim;
  double amount;
};

/// Returns the claims with a share, without those inside another claim.
std::vector<Taken> taken_by(const std::vector<Claim>& others, double ClaimedNode::*member) {
  std::vector<Taken> all;
  for (const Claim& claim : others) {
    const bool part =
        std::any_of(others.begin(), others.end(), [&](const Claim& other) { return other.process == claim.within; });
    double amount = 0;
    for (const ClaimedNode& node : claim.nodes) amount += node.*member;
    if (!part && amount > 0) all.push_back({&claim, amount});
  }
  return all;
}

void check_sum_beside(const std::vector<double>& parts, const std::vector<Taken>& others, double host,
                      const std::string& unit) {
  double taken = 0;
  std::string names;
  std::string processes;
  for (const Taken& other : others) {
    taken += other.amount;
    names += fmt::format("{}process {} ({}) has {}", names.empty() ? "" : ", ", other.claim->process,
                         other.claim->command, number_text(other.amount));
    processes += fmt::format(" {}", other.claim->process);
  }
  if (taken == 0 || parts.empty() || sum_of(parts) + taken <= host * (1 + kRounding)) return;
  throw UsageError(
      fmt::format("emulate: {}, and of the {}{} of this machine other emulated clusters have {}: {}; wait until they "
                  "have ended, or end them with `kill -INT{}` (`ip netns` shows the nodes of all)",
                  need_text(parts, unit), number_text(host), unit, number_text(taken), names, processes));
}

}  // namespace

std::vector<NodeSpec> parse_nodes(const std::string& text, size_t nodes) {
  std::vector<NodeSpec> result(nodes);
  const std::string_view whole = trimmed(text);
  if (whole == "on" || whole == "1" || whole == "true") return result;
  std::vector<Setting> settings;
  for (const std::string_view piece : split(whole, ',')) settings.push_back(parse_setting(trimmed(piece), nodes));
  // Settings of a single node have precedence, also over later ones.
  for (const bool single : {false, true}) {
    for (const Setting& setting : settings) {
      for (size_t node = 0; node < nodes; ++node) {
        const bool meant = single ? setting.node == node : !setting.node.has_value();
        if (meant) result[node].*setting.key->member = setting.value;
      }
    }
  }
  return result;
}

void share_cores(std::vector<NodeSpec>& nodes, double host_cores) {
  size_t open = 0;
  for (const NodeSpec& node : nodes) {
    if (node.cores > 0) host_cores -= node.cores;
    if (node.cores <= 0) ++open;
  }
  for (NodeSpec& node : nodes) {
    if (node.cores <= 0) node.cores = host_cores / static_cast<double>(open);
  }
}

std::vector<size_t> place_on_cores(const std::vector<NodeSpec>& nodes, size_t cores, std::vector<double> load) {
  load.resize(cores, 0);
  std::vector<size_t> places;
  for (const NodeSpec& node : nodes) {
    // Takes the emptiest core, and among equals that of the node before: the first node, whose roles do most, is least
    // disturbed.
    size_t best = places.empty() ? 0 : places.back();
    for (size_t core = 0; core < cores; ++core) {
      if (load[core] < load[best] - kRounding) best = core;
    }
    load[best] += node.cores;
    if (load[best] > 1 + kRounding) return {};
    places.push_back(best);
  }
  return places;
}

void check_fits(const std::vector<NodeSpec>& nodes, double host_cores, double host_memory) {
  const std::vector<double> cores = given_of(nodes, &NodeSpec::cores);
  check_sum(cores, host_cores, " cores");
  check_sum(given_of(nodes, &NodeSpec::memory_bytes, kGigabyte), host_memory / kGigabyte, " GB");
  const auto open =
      static_cast<size_t>(std::count_if(nodes.begin(), nodes.end(), [](auto& n) { return n.cores <= 0; }));
  const double given = sum_of(cores);
  constexpr double kLeast = 0.01;
  if (open > 0 && host_cores - given < kLeast * static_cast<double>(open)) {
    throw UsageError(fmt::format("emulate: {} = {} cores, and this machine has {}: none are left for {} of the nodes",
                                 sum_text(cores, ""), number_text(given), number_text(host_cores), open));
  }
}

void check_beside(const std::vector<NodeSpec>& nodes, const std::vector<Claim>& others, double host_cores,
                  double host_memory) {
  check_sum_beside(given_of(nodes, &NodeSpec::cores), taken_by(others, &ClaimedNode::cores), host_cores, " cores");
  std::vector<Taken> memory = taken_by(others, &ClaimedNode::memory_bytes);
  for (Taken& other : memory) other.amount /= kGigabyte;
  check_sum_beside(given_of(nodes, &NodeSpec::memory_bytes, kGigabyte), memory, host_memory / kGigabyte, " GB");
}

}  // namespace lockstep::emulate
