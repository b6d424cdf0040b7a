#include "observe/monitor/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

namespace lockstep::observe {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kPercent = 100;
constexpr const char* kLoopback = "lo";

struct Column {
  const char* name;
  const char* help;
};

constexpr std::array kColumns = std::to_array<Column>({
    {"cpu_percent", "CPU time of the process; 100 is one core"},
    {"user_percent", "CPU time of the process in its own code; 100 is one core"},
    {"system_percent", "CPU time of the process in the system's code; 100 is one core"},
    {"rss_bytes", "memory of the process in RAM"},
    {"peak_rss_bytes", "largest memory of the process in RAM so far"},
    {"minor_faults", "page faults of the process without a read from a disk, per second"},
    {"major_faults", "page faults of the process with a read from a disk, per second"},
    {"context_switches", "context switches of the process's threads, per second"},
    {"involuntary_switches", "context switches of the process's threads forced by the system, per second"},
    {"threads", "threads of the process"},
    {"disk_read", "bytes that the process made disks read, per second"},
    {"disk_written", "bytes that the process made disks write, per second"},
    {"wire_received", "bytes received from other roles, per second"},
    {"wire_sent", "bytes sent to other roles, per second"},
    {"wire_messages_received", "messages received from other roles, per second"},
    {"wire_messages_sent", "messages sent to other roles, per second"},
    {"node_cpu_percent", "CPU time of the node; 100 is all cores"},
    {"node_user_percent", "CPU time of the node in programs; 100 is all cores"},
    {"node_system_percent", "CPU time of the node in the system; 100 is all cores"},
    {"node_iowait_percent", "time in which the node's cores waited for disks; 100 is all cores"},
    {"node_steal_percent", "time that other machines on the same hardware took; 100 is all cores"},
    {"node_memory_used", "bytes of the node's memory that are not available"},
    {"node_context_switches", "context switches of all processes of the node, per second"},
    {"node_disk_read", "bytes that the node's disks read, per second"},
    {"node_disk_written", "bytes that the node's disks wrote, per second"},
});

constexpr auto kFixedColumns = [] {
  std::array<const char*, kColumns.size()> names{};
  for (size_t i = 0; i < names.size(); ++i) names[i] = kColumns[i].name;
  return names;
}();

/// Columns of an interface or a GPU: the end of their name, and what they hold.
constexpr std::array kEndings = std::to_array<Column>({
    {"_packets_received", "packets received by {}, per second"},
    {"_packets_sent", "packets sent by {}, per second"},
    {"_received", "bytes received by {}, per second"},
    {"_sent", "bytes sent by {}, per second"},
    {"_percent", "share of time in which {} computed, in percent"},
    {"_memory_used", "bytes of memory used on {}"},
    {"_power", "power taken by {}, in watts"},
});

void add_interface_columns(const std::string& name, std::vector<std::string>& columns) {
  std::string plain = name;
  // A name may contain almost any character, but a CSV's header may not.
  for (char& c : plain) {
    if (c == ',' || c == '"' || static_cast<unsigned char>(c) <= ' ') c = '_';
  }
  for (const char* what : {"_received", "_sent", "_packets_received", "_packets_sent"}) columns.push_back(plain + what);
}

struct Flow {
  double received = 0;
  double sent = 0;
  double packets_received = 0;
  double packets_sent = 0;

  void add(const Flow& other) {
    received += other.received;
    sent += other.sent;
    packets_received += other.packets_received;
    packets_sent += other.packets_sent;
  }
};

double as_double(const std::optional<uint64_t>& value) { return value ? static_cast<double>(*value) : kNone; }

const InterfaceCounters* find(const NodeTotals& node, const std::string& name) {
  const auto found = std::find_if(node.interfaces.begin(), node.interfaces.end(),
                                  [&](const InterfaceCounters& one) { return one.name == name; });
  return found == node.interfaces.end() ? nullptr : &*found;
}

}  // namespace

std::span<const char* const> fixed_columns() { return kFixedColumns; }

std::string column_help(std::string_view column) {
  for (const Column& known : kColumns) {
    if (column == known.name) return known.help;
  }
  for (const Column& ending : kEndings) {
    if (!column.ends_with(ending.name)) continue;
    const std::string_view device = column.substr(0, column.size() - std::string_view(ending.name).size());
    const std::string name = device == "net"       ? "all network interfaces but loopback"
                             : device == kLoopback ? "the loopback interface"
                                                   : std::string(device);
    return fmt::format(fmt::runtime(ending.help), name);
  }
  return std::string(column);
}

Sampler::Sampler(Reading first)
    : before_(std::move(first)), begun_(before_.when), columns_(kFixedColumns.begin(), kFixedColumns.end()) {
  add_interface_columns(kLoopback, columns_);
  add_interface_columns("net", columns_);
  for (const InterfaceCounters& one : before_.node.interfaces) {
    if (one.name == kLoopback) continue;
    interfaces_.push_back(one.name);
    add_interface_columns(one.name, columns_);
  }
  for (size_t i = 0; i < before_.gpus.size(); ++i) {
    for (const char* what : {"_percent", "_memory_used", "_power"}) {
      columns_.push_back("gpu" + std::to_string(i) + what);
    }
  }
  values_.reserve(columns_.size());
}

const std::vector<double>& Sampler::advance(Reading now) {
  constexpr double kShortest = 1e-6;
  interval_ = std::max(kShortest, std::chrono::duration<double>(now.when - before_.when).count());
  values_.clear();
  add_process(now);
  add_node(now);
  add_network(now);
  add_gpus(now);
  before_ = std::move(now);
  return values_;
}

double Sampler::rate(double before, double now) const {
  return std::isnan(before) || std::isnan(now) ? kNone : std::max(0.0, now - before) / interval_;
}

void Sampler::add_process(const Reading& now) {
  const ProcessTotals& was = before_.process;
  const ProcessTotals& is = now.process;
  const double user = kPercent * rate(was.user_seconds, is.user_seconds);
  const double system = kPercent * rate(was.system_seconds, is.system_seconds);
  const double involuntary = rate(was.involuntary_switches, is.involuntary_switches);
  put(user + system);
  put(user);
  put(system);
  put(is.rss_bytes);
  put(is.peak_rss_bytes);
  put(rate(was.minor_faults, is.minor_faults));
  put(rate(was.major_faults, is.major_faults));
  put(rate(was.voluntary_switches, is.voluntary_switches) + involuntary);
  put(involuntary);
  put(is.threads);
  put(rate(was.read_bytes, is.read_bytes));
  put(rate(was.written_bytes, is.written_bytes));
  const auto wire = [&](uint64_t base::TrafficMeter::Totals::*what) {
    const bool known = now.has_traffic && before_.has_traffic;
    put(known ? rate(static_cast<double>(before_.traffic.*what), static_cast<double>(now.traffic.*what)) : kNone);
  };
  wire(&base::TrafficMeter::Totals::received_bytes);
  wire(&base::TrafficMeter::Totals::sent_bytes);
  wire(&base::TrafficMeter::Totals::received_messages);
  wire(&base::TrafficMeter::Totals::sent_messages);
}

void Sampler::add_node(const Reading& now) {
  const NodeTotals& was = before_.node;
  const NodeTotals& is = now.node;
  const bool known = was.stat && is.stat && is.stat->all() > was.stat->all();
  const double ticks = known ? static_cast<double>(is.stat->all() - was.stat->all()) : kNone;
  const auto share = [&](uint64_t NodeStat::*what) {
    if (!known) return kNone;
    return kPercent * std::max(0.0, static_cast<double>((*is.stat).*what) - static_cast<double>((*was.stat).*what)) /
           ticks;
  };
  put(share(&NodeStat::user) + share(&NodeStat::system));
  put(share(&NodeStat::user));
  put(share(&NodeStat::system));
  put(is.emulated ? kNone : share(&NodeStat::iowait));
  put(is.emulated ? kNone : share(&NodeStat::steal));
  put(as_double(is.memory_used));
  const bool switches = was.stat && is.stat;
  put(switches ? rate(as_double(was.stat->context_switches), as_double(is.stat->context_switches)) : kNone);
  const bool disks = was.disks && is.disks;
  put(disks ? rate(static_cast<double>(was.disks->read), static_cast<double>(is.disks->read)) : kNone);
  put(disks ? rate(static_cast<double>(was.disks->written), static_cast<double>(is.disks->written)) : kNone);
}

void Sampler::add_network(const Reading& now) {
  const auto flow_of = [&](const std::string& name) -> std::optional<Flow> {
    const InterfaceCounters* was = find(before_.node, name);
    const InterfaceCounters* is = find(now.node, name);
    if (was == nullptr || is == nullptr) return std::nullopt;
    const auto of = [&](uint64_t InterfaceCounters::*what) {
      return rate(static_cast<double>(was->*what), static_cast<double>(is->*what));
    };
    return Flow{of(&InterfaceCounters::received_bytes), of(&InterfaceCounters::sent_bytes),
                of(&InterfaceCounters::received_packets), of(&InterfaceCounters::sent_packets)};
  };
  const auto put_flow = [&](const std::optional<Flow>& flow) {
    put(flow ? flow->received : kNone);
    put(flow ? flow->sent : kNone);
    put(flow ? flow->packets_received : kNone);
    put(flow ? flow->packets_sent : kNone);
  };
  put_flow(flow_of(kLoopback));
  Flow sum;
  for (const InterfaceCounters& one : now.node.interfaces) {
    if (one.name == kLoopback) continue;
    if (const auto flow = flow_of(one.name)) sum.add(*flow);
  }
  put_flow(now.node.interfaces.empty() ? std::nullopt : std::optional(sum));
  for (const std::string& name : interfaces_) put_flow(flow_of(name));
}

void Sampler::add_gpus(const Reading& now) {
  const size_t count = (columns_.size() - values_.size()) / 3;
  for (size_t i = 0; i < count; ++i) {
    const GpuReading gpu = i < now.gpus.size() ? now.gpus[i] : GpuReading{};
    put(gpu.percent);
    put(gpu.memory_used);
    put(gpu.power);
  }
}

}  // namespace lockstep::observe
