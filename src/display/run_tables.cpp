#include "display/run_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "records/format.h"
#include "terminal/chart.h"
#include "terminal/table.h"
#include "terminal/text.h"

namespace lockstep::display {
namespace {

using records::known;
using records::RoleRecord;
using records::RunRecord;

struct PhaseLook {
  std::string_view column;
  std::string_view name;
  char key;
};
/// Phases of workers, then of servers; the position selects the colour.
constexpr std::array<PhaseLook, 16> kLooks{{{"data", "data wait", 'd'},
                                            {"forward", "forward", 'f'},
                                            {"backward", "backward", 'b'},
                                            {"optimizer", "optimizer", 'o'},
                                            {"push", "push", '>'},
                                            {"pull", "pull", '<'},
                                            {"transfer", "transfer", 't'},
                                            {"others", "wait for others", 'w'},
                                            {"evaluation", "evaluation", 'e'},
                                            {"checkpoint", "checkpoint", 'c'},
                                            {"rest", "rest", '.'},
                                            {"receive", "receive", '<'},
                                            {"wait", "wait", 'w'},
                                            {"apply", "apply", 'a'},
                                            {"send", "send", '>'},
                                            {"store", "store", 's'}}};

size_t look_of(std::string_view column) {
  const auto* const found =
      std::find_if(kLooks.begin(), kLooks.end(), [&](const PhaseLook& look) { return look.column == column; });
  return static_cast<size_t>(found - kLooks.begin());
}

char key_of(std::string_view column) {
  const size_t look = look_of(column);
  return look < kLooks.size() ? kLooks[look].key : '?';
}

std::string or_empty(double value, std::string (*text)(double)) { return known(value) ? text(value) : ""; }

std::string bytes_of(double value) { return records::amount_text(value); }

std::string dense_table(const terminal::Terminal& terminal, std::vector<terminal::Table::Column> columns,
                        std::vector<std::vector<std::string>> rows, size_t width, size_t keys = 1) {
  terminal::Table table(std::move(columns));
  for (auto& row : rows) table.add(std::move(row));
  table.drop_empty_columns();
  return table.text(terminal, std::max<size_t>(width, 60), keys);
}

/// Returns a worker's examples per second of the time that the run's rate counts: without evaluations and checkpoints.
double rate_of(const RunRecord& run, const records::WorkerRow& row) {
  const double counted = run.examples() / run.examples_per_second();
  return row.examples / (counted < row.finished_seconds ? counted : row.finished_seconds);
}

std::vector<std::string> role_row(const RunRecord& run, const RoleRecord& role, const std::string& host) {
  const records::WorkerRow* found = run.worker(role.role);
  const records::WorkerRow row = found == nullptr ? records::WorkerRow{} : *found;
  const bool alone = run.roles.size() == 1 && found == nullptr;
  const double iterations = alone ? run.steps() : role.serves() ? role.summary.number("updates") : row.iterations;
  const double speed = alone ? run.examples_per_second() : rate_of(run, row);
  const std::string staleness =
      known(row.staleness_mean) ? fmt::format("{:.2f} / {:.0f}", row.staleness_mean, row.staleness_max) : "";
  return {role.role,
          host,
          or_empty(iterations, records::count_text),
          or_empty(speed, records::count_text),
          or_empty(row.wait_share, records::share_text),
          staleness,
          or_empty(role.resource("cpu_percent").mean, records::percent_text),
          or_empty(role.resource("cpu_percent").max, records::percent_text),
          or_empty(role.peak_memory(), bytes_of),
          or_empty(role.resource("wire_received").mean, records::speed_text),
          or_empty(role.resource("wire_sent").mean, records::speed_text),
          row.restarts > 0 ? records::count_text(row.restarts) : "",
          row.dropped > 0 ? records::count_text(row.dropped) : ""};
}

/// Returns the loss of the last epoch, or of the last lines of the log if the run did not end.
std::string train_loss_text(const RunRecord& run) {
  if (known(run.train_loss())) return terminal::loss_text(run.train_loss());
  const std::span<const double> losses = run.chief().steps.column("loss");
  const size_t count = std::min<size_t>(losses.size(), 10);
  const double recent = records::mean(losses.last(count));
  if (!known(recent)) return "";
  return fmt::format("{} (mean of the last {} of steps.csv)", terminal::loss_text(recent),
                     terminal::counted(count, "line"));
}

}  // namespace

std::string phase_name(std::string_view column) {
  const size_t look = look_of(column);
  return std::string(look < kLooks.size() ? kLooks[look].name : column);
}

std::string result_lines(const terminal::Terminal& terminal, const RunRecord& run) {
  std::string result;
  const auto add = [&](std::string_view what, const std::string& value) {
    if (!value.empty()) result += fmt::format("  {:<15} {}\n", what, value);
  };
  const records::RunSummary& summary = run.summary();
  std::string accuracy = known(run.test_accuracy()) ? terminal.bold(terminal::percent(run.test_accuracy())) : "";
  const double best = summary.number("best_accuracy");
  if (best > run.test_accuracy()) {
    accuracy +=
        fmt::format(" (best {} at step {})", terminal::percent(best), records::count_text(summary.number("best_step")));
  }
  add("test accuracy", accuracy);
  if (known(run.test_loss())) add("test loss", terminal::loss_text(run.test_loss()));
  add("training loss", train_loss_text(run));
  if (known(run.steps())) {
    const double epochs = summary.number("epochs");
    add("length",
        fmt::format(
            "{} steps{}{}", records::count_text(run.steps()),
            known(epochs) ? ", " + terminal::counted(static_cast<uint64_t>(std::max(epochs, 0.0)), "epoch") : "",
            known(run.examples()) ? ", " + records::count_text(run.examples()) + " examples" : ""));
  }
  if (known(run.examples_per_second())) {
    add("speed", fmt::format("{} examples/s, {} per step", records::count_text(run.examples_per_second()),
                             records::time_text(run.seconds_per_step())));
  }
  const auto rates = run.chief().steps.column("examples_per_second");
  if (rates.size() > 3) {
    add("", fmt::format("{}  examples/s over the run", terminal::sparkline(terminal, rates.subspan(1), 40)));
  }
  return result;
}

std::string role_table(const terminal::Terminal& terminal, const RunRecord& run, size_t width) {
  constexpr auto kRight = terminal::Table::Align::right;
  std::vector<std::vector<std::string>> rows;
  // The headline already names the host if all roles ran on the chief's.
  const bool hosts = std::any_of(run.roles.begin(), run.roles.end(),
                                 [&](const RoleRecord& role) { return role.host != run.chief().host; });
  for (const RoleRecord& role : run.roles) rows.push_back(role_row(run, role, hosts ? role.host : ""));
  for (const records::WorkerRow& row : run.summary().workers) {
    if (run.role(row.role) != nullptr) continue;
    RoleRecord absent;
    absent.role = row.role;
    rows.push_back(role_row(run, absent, ""));
  }
  return dense_table(terminal,
                     {{"role"},
                      {"host"},
                      {"iterations", kRight},
                      {"examples/s", kRight},
                      {"waited", kRight},
                      {"staleness", kRight},
                      {"CPU", kRight},
                      {"at most", kRight},
                      {"memory", kRight},
                      {"wire in", kRight},
                      {"wire out", kRight},
                      {"restarts", kRight},
                      {"dropped", kRight}},
                     std::move(rows), width);
}

std::string phase_text(const terminal::Terminal& terminal, const RunRecord& run, size_t width) {
  constexpr auto kRight = terminal::Table::Align::right;
  size_t names = 0;
  for (const RoleRecord& role : run.roles) names = std::max(names, role.role.size());
  std::string bars;
  std::vector<std::vector<std::string>> rows;
  for (const RoleRecord& role : run.roles) {
    if (role.phases.empty()) continue;
    std::vector<terminal::BarPart> parts;
    bool first = true;
    for (const records::PhaseTotals& phase : role.phases) {
      const size_t look = look_of(phase.name);
      const char key = key_of(phase.name);
      parts.push_back({key, phase.share, look});
      const std::string mark = terminal.colours && terminal.unicode ? "█" : std::string(1, key);
      rows.push_back({first ? role.role : "", terminal.coloured(mark, look) + " " + phase_name(phase.name),
                      records::share_text(phase.share), records::time_text(phase.seconds),
                      or_empty(phase.count, records::count_text), or_empty(phase.mean, records::time_text),
                      or_empty(phase.p50, records::time_text), or_empty(phase.p95, records::time_text),
                      or_empty(phase.p99, records::time_text)});
      first = false;
    }
    const size_t columns = std::clamp<size_t>(width, 60, 200) - names - 4;
    bars += fmt::format("  {}  {}\n", terminal::padded_right(role.role, names),
                        terminal::stacked_bar(terminal, parts, columns));
  }
  if (rows.empty()) return "";
  if (run.in_process()) bars += fmt::format("  of replica 0 of {}; all compute alike\n", run.workers());
  return bars + "\n" +
         dense_table(terminal,
                     {{"role"},
                      {"phase"},
                      {"share", kRight},
                      {"time", kRight},
                      {"times", kRight},
                      {"mean", kRight},
                      {"p50", kRight},
                      {"p95", kRight},
                      {"p99", kRight}},
                     std::move(rows), width, 2);
}

std::string peak_table(const terminal::Terminal& terminal, const RunRecord& run, size_t width) {
  constexpr auto kRight = terminal::Table::Align::right;
  std::map<std::string, const RoleRecord*> nodes;  // all roles of a node saw the same
  for (const RoleRecord& role : run.roles) {
    if (known(role.resource("node_cpu_percent").max)) nodes.emplace(role.host, &role);
  }
  if (nodes.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const auto& [host, role] : nodes) {
    const auto peak = [&seen = *role](const char* column, std::string (*text)(double)) {
      return or_empty(seen.resource(column).max, text);
    };
    rows.push_back({host.empty() ? "node" : host,
                    or_empty(role->resource("node_cpu_percent").mean, records::percent_text),
                    peak("node_cpu_percent", records::percent_text), peak("node_steal_percent", records::percent_text),
                    peak("node_memory_used", bytes_of), peak("net_received", records::speed_text),
                    peak("net_sent", records::speed_text), peak("lo_sent", records::speed_text),
                    peak("node_disk_read", records::speed_text), peak("node_disk_written", records::speed_text),
                    peak("gpu0_percent", records::percent_text)});
  }
  return dense_table(terminal,
                     {{"peaks of"},
                      {"CPU, mean", kRight},
                      {"CPU", kRight},
                      {"stolen", kRight},
                      {"memory", kRight},
                      {"net in", kRight},
                      {"net out", kRight},
                      {"loopback", kRight},
                      {"disk in", kRight},
                      {"disk out", kRight},
                      {"GPU", kRight}},
                     std::move(rows), width);
}

}  // namespace lockstep::display
