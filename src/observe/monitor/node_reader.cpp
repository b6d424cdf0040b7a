#include "observe/monitor/node_reader.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>

namespace lockstep::observe {
namespace {

/// Of the version of control groups that there is.
std::string first_or(const std::string& folder, const char* first, const char* second) {
  std::error_code ignored;
  return folder.empty() ? "" : folder + "/" + (std::filesystem::exists(folder + "/" + first, ignored) ? first : second);
}

std::string in(const std::string& folder, const char* name) { return folder.empty() ? "" : folder + "/" + name; }

std::optional<uint64_t> number(std::string_view text) {
  uint64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

/// The number after a key that begins a line.
std::optional<uint64_t> number_after(std::string_view text, std::string_view key) {
  for (size_t at = 0; at < text.size();) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    if (line.starts_with(key)) return number(line.substr(key.size()));
    at += line.size() + 1;
  }
  return std::nullopt;
}

}  // namespace

GroupReader::GroupReader(const base::OwnNode& node)
    : cores_(node.cores),
      user_(in(node.cpu_group, "cpuacct.usage_user")),
      system_(in(node.cpu_group, "cpuacct.usage_sys")),
      cpu_stat_(in(node.cpu_group, "cpu.stat")),
      memory_(first_or(node.memory_group, "memory.usage_in_bytes", "memory.current")),
      memory_stat_(in(node.memory_group, "memory.stat")) {}

std::optional<NodeStat> GroupReader::stat() {
  constexpr uint64_t kMicrosecond = 1000;
  std::optional<uint64_t> user = number(user_.read());
  std::optional<uint64_t> system = number(system_.read());
  if (!user || !system) {
    const std::string_view text = cpu_stat_.read();
    user = number_after(text, "user_usec ");
    system = number_after(text, "system_usec ");
    if (!user || !system) return std::nullopt;
    user = *user * kMicrosecond;
    system = *system * kMicrosecond;
  }
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const double had = cores_ * std::chrono::duration<double, std::nano>(now).count();
  NodeStat stat;
  stat.user = *user;
  stat.system = *system;
  const uint64_t used = stat.user + stat.system;
  stat.idle = static_cast<uint64_t>(had) > used ? static_cast<uint64_t>(had) - used : 0;
  return stat;
}

std::optional<uint64_t> GroupReader::memory_used() {
  const std::optional<uint64_t> all = number(memory_.read());
  if (!all) return std::nullopt;
  const std::string_view text = memory_stat_.read();
  std::optional<uint64_t> cache = number_after(text, "total_inactive_file ");
  if (!cache) cache = number_after(text, "inactive_file ");
  return *all - std::min(*all, cache.value_or(0));  // files that it has read are given up for others
}

NodeReader::NodeReader() {
  if (const std::optional<base::OwnNode> node = base::own_node()) group_.emplace(*node);
}

NodeTotals NodeReader::read() {
  NodeTotals totals;
  totals.interfaces = parse_interfaces(network_.read());
  totals.emulated = group_.has_value();
  if (group_) {
    totals.stat = group_->stat();
    totals.memory_used = group_->memory_used();
    return totals;
  }
  totals.stat = parse_node_stat(stat_.read());
  totals.memory_used = parse_memory_used(memory_.read());
  totals.disks = parse_disks(disks_.read());
  return totals;
}

}  // namespace lockstep::observe
