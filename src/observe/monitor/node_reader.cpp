#include "observe/monitor/node_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>

namespace lockstep::observe {
namespace {

/// Returns the file of the version of control groups in use.
std::string first_or(const std::string& folder, const char* first, const char* second) {
  std::error_code ignored;
  return folder.empty() ? "" : folder + "/" + (std::filesystem::exists(folder + "/" + first, ignored) ? first : second);
}

std::string in(const std::string& folder, const char* name) { return folder.empty() ? "" : folder + "/" + name; }

std::optional<uint64_t> leading_number(std::string_view text) {
  uint64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc()) return std::nullopt;
  return value;
}

/// Returns the number after a key at the start of a line.
std::optional<uint64_t> number_after(std::string_view text, std::string_view key) {
  for (size_t at = 0; at < text.size();) {
    const std::string_view line = text.substr(at, text.find('\n', at) - at);
    if (line.starts_with(key)) return leading_number(line.substr(key.size()));
    at += line.size() + 1;
  }
  return std::nullopt;
}

}  // namespace

GroupReader::GroupReader(const base::OwnNode& node)
    : cores_(node.cores),
      usage_(in(node.cpu_group, "cpuacct.usage")),
      user_(in(node.cpu_group, "cpuacct.usage_user")),
      system_(in(node.cpu_group, "cpuacct.usage_sys")),
      cpu_stat_(in(node.cpu_group, "cpu.stat")),
      memory_(first_or(node.memory_group, "memory.usage_in_bytes", "memory.current")),
      memory_stat_(in(node.memory_group, "memory.stat")) {}

std::optional<GroupReader::Used> GroupReader::used() {
  constexpr uint64_t kMicrosecond = 1000;
  const std::optional<uint64_t> all = leading_number(usage_.read());
  const std::optional<uint64_t> user = leading_number(user_.read());
  const std::optional<uint64_t> system = leading_number(system_.read());
  if (all && user && system) return Used{*all, *user, *system};
  const std::string_view text = cpu_stat_.read();
  const std::optional<uint64_t> all_usec = number_after(text, "usage_usec ");
  const std::optional<uint64_t> user_usec = number_after(text, "user_usec ");
  const std::optional<uint64_t> system_usec = number_after(text, "system_usec ");
  if (!all_usec || !user_usec || !system_usec) return std::nullopt;
  return Used{*all_usec * kMicrosecond, *user_usec * kMicrosecond, *system_usec * kMicrosecond};
}

std::optional<NodeStat> GroupReader::stat() {
  const std::optional<Used> used = this->used();
  if (!used) return std::nullopt;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const double had = cores_ * std::chrono::duration<double, std::nano>(now).count();
  // The total is exact. The parts are sampled by the timer, in step with a quota's periods, so they only give the
  // ratio.
  const auto user = static_cast<double>(used->user - before_.user);
  const auto system = static_cast<double>(used->system - before_.system);
  const double more = static_cast<double>(used->all - before_.all) * (user + system > 0 ? user / (user + system) : 1);
  user_part_ += static_cast<uint64_t>(more);
  before_ = *used;
  NodeStat stat;
  stat.user = user_part_;
  stat.system = used->all - user_part_;
  stat.idle = static_cast<uint64_t>(had) > used->all ? static_cast<uint64_t>(had) - used->all : 0;
  return stat;
}

std::optional<uint64_t> GroupReader::memory_used() {
  const std::optional<uint64_t> all = leading_number(memory_.read());
  if (!all) return std::nullopt;
  const std::string_view text = memory_stat_.read();
  std::optional<uint64_t> cache = number_after(text, "total_inactive_file ");
  if (!cache) cache = number_after(text, "inactive_file ");
  return *all - std::min(*all, cache.value_or(0));  // cached files are dropped when memory is needed
}

std::optional<DiskBytes> GroupDisks::read() {
  if (folder_.empty()) return std::nullopt;
  // Opened again each time: the list is made when it is opened.
  ProcFile list(folder_ + "/cgroup.procs");
  std::map<int, DiskBytes> now;
  std::string_view rest = list.read();
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::optional<uint64_t> process = leading_number(line);
    if (!process) continue;
    const ProcessIo io = parse_process_io(ProcFile(fmt::format("/proc/{}/io", *process)).read());
    if (!io.read_bytes || !io.written_bytes) continue;
    const auto id = static_cast<int>(*process);
    const auto before = seen_.find(id);
    DiskBytes was = before == seen_.end() ? DiskBytes{} : before->second;
    if (was.read > *io.read_bytes || was.written > *io.written_bytes) was = {};  // another process of that number
    total_.read += *io.read_bytes - was.read;
    total_.written += *io.written_bytes - was.written;
    now[id] = {*io.read_bytes, *io.written_bytes};
  }
  if (now.empty() && seen_.empty()) return std::nullopt;
  seen_ = std::move(now);
  return total_;
}

NodeReader::NodeReader() {
  const std::optional<base::OwnNode> node = base::own_node();
  if (!node) return;
  group_.emplace(*node);
  group_disks_.emplace(node->cpu_group);
}

NodeTotals NodeReader::read() {
  NodeTotals totals;
  totals.interfaces = parse_interfaces(network_.read());
  totals.emulated = group_.has_value();
  if (group_) {
    totals.stat = group_->stat();
    totals.memory_used = group_->memory_used();
    totals.disks = group_disks_->read();
    return totals;
  }
  totals.stat = parse_node_stat(stat_.read());
  totals.memory_used = parse_memory_used(memory_.read());
  totals.disks = parse_disks(disks_.read());
  return totals;
}

}  // namespace lockstep::observe
