#include "observe/monitor/proc_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

namespace lockstep::observe {
namespace {

constexpr uint64_t kKilobyte = 1024;    // unit of /proc
constexpr uint64_t kSectorBytes = 512;  // unit of /proc, whatever the disk's sectors are
constexpr size_t kMostFields = 64;

/// Takes the next line, without its end, off the front of `text`.
std::string_view take_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::string_view take_word(std::string_view& text) {
  const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  const size_t end = std::min(text.find_first_of(" \t", begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

std::optional<uint64_t> number(std::string_view word) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

/// Reads numbers up to the first word that is not one.
class Numbers {
 public:
  explicit Numbers(std::string_view text) {
    while (count_ < kMostFields) {
      const std::optional<uint64_t> value = number(take_word(text));
      if (!value) break;
      values_[count_++] = *value;
    }
  }
  [[nodiscard]] size_t count() const { return count_; }
  uint64_t operator[](size_t i) const { return i < count_ ? values_[i] : 0; }

 private:
  std::array<uint64_t, kMostFields> values_{};
  size_t count_ = 0;
};

/// Reads the number after "Name:" if the line has that name.
bool take_field(std::string_view line, std::string_view name, std::optional<uint64_t>& value) {
  if (!line.starts_with(name)) return false;
  line.remove_prefix(name.size());
  value = number(take_word(line));
  return true;
}

struct Disk {
  std::string_view name;
  DiskBytes bytes;
};

/// Returns true for loop devices, RAM disks, and devices made of other disks, which already count the bytes.
bool is_virtual(std::string_view name) {
  constexpr std::array<std::string_view, 7> kVirtual = {"loop", "ram", "zram", "dm-", "md", "fd", "nbd"};
  return std::any_of(kVirtual.begin(), kVirtual.end(), [&](std::string_view kind) { return name.starts_with(kind); });
}

/// Returns true for sda1 of sda, nvme0n1p2 of nvme0n1.
bool is_partition_of(std::string_view name, std::string_view disk) {
  if (name.size() <= disk.size() || disk.empty() || !name.starts_with(disk)) return false;
  std::string_view rest = name.substr(disk.size());
  if (disk.back() >= '0' && disk.back() <= '9') {
    if (!rest.starts_with('p')) return false;
    rest.remove_prefix(1);
  }
  return number(rest).has_value();
}

}  // namespace

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  const size_t name_end = text.rfind(')');  // the name may contain any character
  if (name_end == std::string_view::npos) return std::nullopt;
  text.remove_prefix(name_end + 1);
  const std::string_view state = take_word(text);
  const std::optional<uint64_t> parent = number(take_word(text));
  // Group, session, terminal and its group may be negative.
  for (int skipped = 0; skipped < 4; ++skipped) take_word(text);
  const std::string_view flags_on = text;
  std::string_view rest = flags_on;
  take_word(rest);  // flags
  const Numbers counts(rest);
  constexpr size_t kBeforePriority = 8;
  if (state.size() != 1 || !parent || counts.count() < kBeforePriority) return std::nullopt;
  ProcessStat stat;
  stat.state = state.front();
  stat.parent = static_cast<int64_t>(*parent);
  stat.minor_faults = counts[0];
  stat.waited_minor_faults = counts[1];
  stat.major_faults = counts[2];
  stat.waited_major_faults = counts[3];
  stat.user = counts[4];
  stat.system = counts[5];
  stat.waited_user = counts[6];
  stat.waited_system = counts[7];
  for (size_t skipped = 0; skipped < kBeforePriority + 2; ++skipped) take_word(rest);  // skips priority and nice, too
  const Numbers later(rest);
  constexpr size_t kRss = 4;
  if (later.count() <= kRss) return std::nullopt;
  stat.threads = later[0];
  stat.begun = later[2];
  stat.rss_pages = later[kRss];
  return stat;
}

ProcessStatus parse_process_status(std::string_view text) {
  ProcessStatus status;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (take_field(line, "VmHWM:", status.peak_rss_bytes)) {
      if (status.peak_rss_bytes) *status.peak_rss_bytes *= kKilobyte;
    } else if (!take_field(line, "voluntary_ctxt_switches:", status.voluntary_switches)) {
      take_field(line, "nonvoluntary_ctxt_switches:", status.involuntary_switches);
    }
  }
  return status;
}

ProcessIo parse_process_io(std::string_view text) {
  ProcessIo io;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (!take_field(line, "read_bytes:", io.read_bytes)) take_field(line, "write_bytes:", io.written_bytes);
  }
  return io;
}

std::optional<NodeStat> parse_node_stat(std::string_view text) {
  std::optional<NodeStat> stat;
  std::optional<uint64_t> switches;
  while (!text.empty()) {
    std::string_view line = take_line(text);
    if (take_field(line, "ctxt ", switches)) break;
    if (stat || take_word(line) != "cpu") continue;
    const Numbers ticks(line);
    constexpr size_t kLeast = 4;
    if (ticks.count() < kLeast) return std::nullopt;
    stat.emplace();
    stat->user = ticks[0] + ticks[1];
    stat->interrupts = ticks[5] + ticks[6];
    stat->system = ticks[2] + stat->interrupts;
    stat->idle = ticks[3];
    stat->iowait = ticks[4];
    stat->steal = ticks[7];
  }
  if (stat) stat->context_switches = switches;
  return stat;
}

std::optional<uint64_t> parse_memory_used(std::string_view text) {
  std::optional<uint64_t> total;
  std::optional<uint64_t> available;
  while (!text.empty() && !(total && available)) {
    const std::string_view line = take_line(text);
    if (!take_field(line, "MemTotal:", total)) take_field(line, "MemAvailable:", available);
  }
  if (!total || !available || *available > *total) return std::nullopt;
  return (*total - *available) * kKilobyte;
}

std::vector<InterfaceCounters> parse_interfaces(std::string_view text) {
  std::vector<InterfaceCounters> interfaces;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    const size_t colon = line.rfind(':');  // a name may contain one ("eth0:1")
    if (colon == std::string_view::npos) continue;
    std::string_view name = line.substr(0, colon);
    name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
    const Numbers counts(line.substr(colon + 1));
    constexpr size_t kFields = 16;
    if (name.empty() || counts.count() < kFields) continue;
    interfaces.push_back({std::string(name), counts[0], counts[1], counts[8], counts[9]});
  }
  return interfaces;
}

std::optional<DiskBytes> parse_disks(std::string_view text) {
  std::vector<Disk> disks;
  bool understood = text.empty();
  while (!text.empty()) {
    std::string_view line = take_line(text);
    const bool numbered = number(take_word(line)) && number(take_word(line));
    const std::string_view name = take_word(line);
    const Numbers counts(line);
    constexpr size_t kLeast = 7;
    if (!numbered || counts.count() < kLeast) continue;
    understood = true;
    if (!is_virtual(name)) disks.push_back({name, {counts[2] * kSectorBytes, counts[6] * kSectorBytes}});
  }
  if (!understood) return std::nullopt;
  DiskBytes sum;
  for (const Disk& disk : disks) {
    const bool part = std::any_of(disks.begin(), disks.end(),
                                  [&](const Disk& other) { return is_partition_of(disk.name, other.name); });
    if (part) continue;
    sum.read += disk.bytes.read;
    sum.written += disk.bytes.written;
  }
  return sum;
}

}  // namespace lockstep::observe
