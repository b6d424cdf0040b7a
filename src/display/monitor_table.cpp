#include "display/monitor_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "terminal/table.h"
#include "terminal/text.h"

namespace lockstep::display {
namespace {

enum class Unit : uint8_t { percent, bytes, bytes_per_second, per_second, number, watts };

struct Row {
  const char* column;
  const char* title;
  Unit unit;
};

constexpr std::array kRows = {
    Row{"cpu_percent", "CPU (100 %: one core)", Unit::percent},
    Row{"user_percent", "  user", Unit::percent},
    Row{"system_percent", "  system", Unit::percent},
    Row{"rss_bytes", "memory", Unit::bytes},
    Row{"threads", "threads", Unit::number},
    Row{"major_faults", "page faults from disk", Unit::per_second},
    Row{"context_switches", "context switches", Unit::per_second},
    Row{"disk_read", "disk read", Unit::bytes_per_second},
    Row{"disk_written", "disk written", Unit::bytes_per_second},
    Row{"node_cpu_percent", "machine: CPU (100 %: all cores)", Unit::percent},
    Row{"node_memory_used", "machine: memory", Unit::bytes},
    Row{"node_disk_read", "machine: disk read", Unit::bytes_per_second},
    Row{"node_disk_written", "machine: disk written", Unit::bytes_per_second},
    Row{"lo_received", "machine: loopback", Unit::bytes_per_second},
    Row{"net_received", "machine: network received", Unit::bytes_per_second},
    Row{"net_sent", "machine: network sent", Unit::bytes_per_second},
};

std::string value_text(double value, Unit unit) {
  switch (unit) {
    case Unit::percent:
      return fmt::format("{:.1f} %", value);
    case Unit::bytes:
      return terminal::scaled(value, "B");
    case Unit::bytes_per_second:
      return terminal::scaled(value, "B/s");
    case Unit::per_second:
      return terminal::scaled(value, "/s");
    case Unit::watts:
      return fmt::format("{:.0f} W", value);
    default:
      return fmt::format("{:.0f}", value);
  }
}

void add_row(terminal::Table& table, const observe::ColumnSummary& column, const std::string& title, Unit unit) {
  table.add({title, value_text(column.mean, unit), value_text(column.p50, unit), value_text(column.p95, unit),
             value_text(column.max, unit)});
}

/// Adds a row for a GPU column such as "gpu0_percent".
void add_gpu_row(terminal::Table& table, const observe::ColumnSummary& column) {
  const size_t end = column.name.find('_');
  const std::string number = column.name.substr(3, end - 3);
  const std::string what = column.name.substr(end + 1);
  if (what == "percent") add_row(table, column, "GPU " + number, Unit::percent);
  if (what == "memory_used") add_row(table, column, "GPU " + number + " memory", Unit::bytes);
  if (what == "power") add_row(table, column, "GPU " + number + " power", Unit::watts);
}

}  // namespace

std::string monitor_report(const observe::ResourceSummary& summary, const std::string& program, double seconds,
                           const std::string& csv, const terminal::Terminal& terminal) {
  using enum terminal::Table::Align;
  terminal::Table table({{program}, {"mean", right}, {"p50", right}, {"p95", right}, {"max", right}});
  double peak = 0;
  for (const Row& row : kRows) {
    const auto column = std::find_if(summary.columns.begin(), summary.columns.end(),
                                     [&](const observe::ColumnSummary& one) { return one.name == row.column; });
    if (column != summary.columns.end()) add_row(table, *column, row.title, row.unit);
  }
  for (const observe::ColumnSummary& column : summary.columns) {
    if (column.name == "peak_rss_bytes") peak = column.max;
    if (column.name.starts_with("gpu")) add_gpu_row(table, column);
  }
  std::string text = "\n" + table.text(terminal);
  text += fmt::format("{} in {}", terminal::counted(summary.samples, "sample"), terminal::duration_text(seconds));
  if (peak > 0) text += ", peak memory " + terminal::scaled(peak, "B");
  text += csv.empty() ? "\n" : "; samples in " + csv + "\n";
  return text;
}

}  // namespace lockstep::display
