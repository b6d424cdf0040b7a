// Parsers of the files of /proc. Pure functions over any text: a field that is missing or not a number is left out. Any
// thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::observe {

/// /proc/PID/stat. Times are in clock ticks; `waited` holds those of children that have ended and were waited for.
struct ProcessStat {
  char state = '?';
  int64_t parent = 0;
  uint64_t minor_faults = 0;
  uint64_t major_faults = 0;
  uint64_t waited_minor_faults = 0;
  uint64_t waited_major_faults = 0;
  uint64_t user = 0;
  uint64_t system = 0;
  uint64_t waited_user = 0;
  uint64_t waited_system = 0;
  uint64_t threads = 0;
  uint64_t begun = 0;  ///< start in ticks after boot: identifies a process together with its number
  uint64_t rss_pages = 0;
};
std::optional<ProcessStat> parse_process_stat(std::string_view text);

/// /proc/PID/status. The switches are those of one thread.
struct ProcessStatus {
  std::optional<uint64_t> peak_rss_bytes;
  std::optional<uint64_t> voluntary_switches;
  std::optional<uint64_t> involuntary_switches;
};
ProcessStatus parse_process_status(std::string_view text);

/// /proc/PID/io: bytes read from and written to disks, including children that were waited for.
struct ProcessIo {
  std::optional<uint64_t> read_bytes;
  std::optional<uint64_t> written_bytes;
};
ProcessIo parse_process_io(std::string_view text);

/// /proc/stat, of all cores together, in clock ticks.
struct NodeStat {
  uint64_t user = 0;    ///< includes nice
  uint64_t system = 0;  ///< includes interrupts
  uint64_t interrupts = 0;
  uint64_t idle = 0;
  uint64_t iowait = 0;
  uint64_t steal = 0;
  std::optional<uint64_t> context_switches;

  [[nodiscard]] uint64_t all() const { return user + system + idle + iowait + steal; }
};
std::optional<NodeStat> parse_node_stat(std::string_view text);

/// Parses /proc/meminfo: returns the memory that is not available.
std::optional<uint64_t> parse_memory_used(std::string_view text);

/// /proc/net/dev.
struct InterfaceCounters {
  std::string name;
  uint64_t received_bytes = 0;
  uint64_t received_packets = 0;
  uint64_t sent_bytes = 0;
  uint64_t sent_packets = 0;
};
std::vector<InterfaceCounters> parse_interfaces(std::string_view text);

/// /proc/diskstats: all disks together, without partitions and without devices made of disks or memory.
struct DiskBytes {
  uint64_t read = 0;
  uint64_t written = 0;
};
std::optional<DiskBytes> parse_disks(std::string_view text);

}  // namespace lockstep::observe
