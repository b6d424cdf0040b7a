#include "launch/emulated_nodes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "base/csv_file.h"
#include "base/file.h"
#include "base/host.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "lockstep/error.h"
#include "observe/monitor/node_reader.h"
#include "terminal/text.h"

namespace lockstep::launch {
namespace {

using nlohmann::ordered_json;

constexpr uint64_t kLargestMonitorCsv = uint64_t{64} << 20;

std::vector<emulate::NodeSpec> specs_of(const std::string& text, size_t nodes) {
  std::vector<emulate::NodeSpec> specs = emulate::parse_nodes(text, nodes);
  const int cores = base::available_cores();
  emulate::check_fits(specs, cores, base::machine_memory());
  emulate::share_cores(specs, cores);
  emulate::remove_leftovers();
  return specs;
}

std::string bit_rate_text(double rate) {
  for (const auto& [unit, factor] : {std::pair("G", 1e9), std::pair("M", 1e6)}) {
    if (rate >= factor) return fmt::format("{:.4g} {}bit/s", rate / factor, unit);
  }
  return fmt::format("{:.4g} kbit/s", rate / 1e3);
}

std::string node_text(const emulate::NodeSpec& spec) {
  std::string text = fmt::format("{:.3g} cores", spec.cores);
  if (spec.memory_bytes > 0) text += ", " + terminal::bytes_text(static_cast<uint64_t>(spec.memory_bytes));
  if (spec.rate > 0) text += ", " + bit_rate_text(spec.rate);
  if (spec.delay_seconds > 0) text += fmt::format(", {:.3g} ms delay", spec.delay_seconds * 1e3);
  if (spec.loss > 0) text += fmt::format(", {:.3g} % loss", spec.loss * 100);
  return text;
}

}  // namespace

EmulatedNodes::EmulatedNodes(const std::string& text, std::vector<NodeRoles> roles)
    : roles_(std::move(roles)), cluster_(specs_of(text, roles_.size())) {}

int EmulatedNodes::threads(size_t node, size_t trainers) const {
  const double each = cluster_.spec(node).cores / static_cast<double>(std::max<size_t>(trainers, 1));
  return std::max(1, static_cast<int>(each));
}

size_t EmulatedNodes::node_of(const std::string& role) const {
  const auto has = [&](const NodeRoles& roles) { return std::find(roles.begin(), roles.end(), role) != roles.end(); };
  return static_cast<size_t>(std::find_if(roles_.begin(), roles_.end(), has) - roles_.begin());
}

void EmulatedNodes::put_on_node(process::Command& command, size_t node) const {
  emulate::Seat seat = cluster_.seat(node);
  command.network_namespace = std::move(seat.network_namespace);
  command.groups = std::move(seat.groups);
  command.cores = std::move(seat.cores);
  command.environment.insert(command.environment.end(), seat.environment.begin(), seat.environment.end());
}

void EmulatedNodes::note_memory(const std::string& role, const std::string& monitor_csv) const try {
  base::OwnNode node;
  for (const auto& [name, value] : cluster_.seat(node_of(role)).environment) {
    if (name == "LOCKSTEP_NODE_MEMORY_GROUP") node.memory_group = value;
  }
  const std::optional<uint64_t> used = observe::GroupReader(node).memory_used();
  std::error_code missing;
  if (!used || !std::filesystem::exists(monitor_csv, missing)) return;
  const std::vector<uint8_t> bytes = base::read_file(monitor_csv, kLargestMonitorCsv);
  const std::string text(bytes.begin(), bytes.end());
  const std::string header = text.substr(0, text.find('\n'));
  const size_t last = text.rfind('\n', text.size() - 2) + 1;  // its seconds are those of its life
  const std::string before = text.substr(last);
  std::string line =
      fmt::format("{:.3f}", std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  std::istringstream names(header);
  std::istringstream values(before);
  std::string value;
  for (std::string name; std::getline(names, name, ',');) {
    std::getline(values, value, ',');
    if (name == "time") continue;
    line += name == "seconds" ? "," + value : name == "node_memory_used" ? fmt::format(",{}", *used) : ",";
  }
  base::CsvFile csv = base::CsvFile::resume(monitor_csv, header, std::numeric_limits<uint64_t>::max());
  csv.add(line);
  csv.flush();
} catch (const Error&) {
  // The run goes on with a figure less.
}

std::string EmulatedNodes::text() const {
  std::string first = node_text(cluster_.spec(0));
  for (size_t node = 1; node < cluster_.size(); ++node) {
    if (node_text(cluster_.spec(node)) == first) continue;
    first = "";
    break;
  }
  const std::string count = terminal::counted(cluster_.size(), "emulated node");
  if (!first.empty()) return fmt::format("{} of {}", count, first);
  std::string text = count + ":";
  for (size_t node = 0; node < cluster_.size(); ++node) {
    text += fmt::format("{} {}", node == 0 ? "" : ";", node_text(cluster_.spec(node)));
  }
  return text;
}

void EmulatedNodes::write(const std::string& run_dir, bool ended) const {
  ordered_json nodes = ordered_json::array();
  std::vector<std::pair<std::string, emulate::Throttling>> held;
  for (size_t i = 0; i < cluster_.size(); ++i) {
    const emulate::NodeSpec& spec = cluster_.spec(i);
    ordered_json node{{"node", cluster_.name(i)},
                      {"address", cluster_.address(i)},
                      {"cores", spec.cores},
                      {"machine_cores", base::available_cores()},
                      {"memory_bytes", spec.memory_bytes},
                      {"rate", spec.rate},
                      {"delay_seconds", spec.delay_seconds},
                      {"loss", spec.loss},
                      {"roles", roles_[i]}};
    const emulate::Throttling throttling = cluster_.throttling(i);
    if (ended) node["throttled_seconds"] = throttling.throttled_seconds;
    for (const std::string& role : roles_[i]) held.emplace_back(role, throttling);
    nodes.push_back(std::move(node));
  }
  base::write_whole_file(run_dir + "/nodes.json", nodes.dump(2) + "\n");
  if (ended) base::write_whole_file(run_dir + "/throttling.json", throttling_json(held));
}

std::string throttling_json(const std::vector<std::pair<std::string, emulate::Throttling>>& roles) {
  ordered_json json = ordered_json::object();
  for (const auto& [role, throttling] : roles) {
    json[role] = {{"periods", throttling.periods},
                  {"throttled_periods", throttling.throttled_periods},
                  {"throttled_seconds", throttling.throttled_seconds}};
  }
  return json.dump(2) + "\n";
}

}  // namespace lockstep::launch
