#include "chart/columns.h"

#include <map>

namespace lockstep::chart {
namespace {

const std::map<std::string_view, ColumnText>& column_table() {
  static const std::map<std::string_view, ColumnText> table = {
      {"cpu_percent", {"CPU of the process (100 % is a core)", "percent"}},
      {"user_percent", {"CPU in user mode", "percent"}},
      {"system_percent", {"CPU in the kernel", "percent"}},
      {"rss_bytes", {"Memory of the process", "B"}},
      {"peak_rss_bytes", {"Peak memory of the process", "B"}},
      {"disk_read", {"Disk read by the process", "B/s"}},
      {"disk_written", {"Disk written by the process", "B/s"}},
      {"wire_received", {"Received from other roles", "B/s"}},
      {"wire_sent", {"Sent to other roles", "B/s"}},
      {"wire_messages_received", {"Messages received per second", ""}},
      {"wire_messages_sent", {"Messages sent per second", ""}},
      {"context_switches", {"Context switches per second", ""}},
      {"threads", {"Threads", ""}},
      {"node_cpu_percent", {"CPU of the node", "percent", true}},
      {"node_memory_used", {"Memory in use on the node", "B", true}},
      {"node_disk_read", {"Disks of the node: read", "B/s", true}},
      {"node_disk_written", {"Disks of the node: written", "B/s", true}},
      {"lo_received", {"Loopback received", "B/s", true}},
      {"lo_sent", {"Loopback sent", "B/s", true}},
      {"lo_packets_received", {"Loopback packets received per second", "", true}},
      {"lo_packets_sent", {"Loopback packets sent per second", "", true}},
      {"net_received", {"Network received", "B/s", true}},
      {"net_sent", {"Network sent", "B/s", true}},
      {"net_packets_received", {"Packets received per second", "", true}},
      {"net_packets_sent", {"Packets sent per second", "", true}},
  };
  return table;
}

/// Returns the unit by the end of the name: the names of interfaces and GPUs are not known in advance.
std::string unit_by_end(std::string_view column) {
  if (column.ends_with("_percent")) return "percent";
  if (column.ends_with("_bytes") || column.ends_with("memory_used")) return "B";
  const bool packets = column.find("packets") != std::string_view::npos;
  const bool flow = column.ends_with("_received") || column.ends_with("_sent");
  return flow && !packets ? "B/s" : "";
}

}  // namespace

ColumnText column_text(std::string_view column) {
  const auto found = column_table().find(column);
  if (found != column_table().end()) return found->second;
  const bool flow = column.ends_with("_received") || column.ends_with("_sent");
  return {std::string(column), unit_by_end(column), flow || column.starts_with("node_") || column.starts_with("gpu")};
}

const std::vector<PhasePart>& phase_parts() {
  static const std::vector<PhasePart> parts = {
      {"forward", 0, {"forward"}},
      {"backward", 5, {"backward"}},
      {"update", 6, {"optimizer", "apply"}},
      {"wait for data", 4, {"data"}},
      {"send", 1, {"push", "transfer", "send"}},
      {"receive", 3, {"pull", "receive"}},
      {"wait for others", 2, {"others", "wait"}},
      {"evaluation, checkpoints, rest", 7, {"evaluation", "checkpoint", "store", "rest"}},
  };
  return parts;
}

}  // namespace lockstep::chart
