#include "report/defaults.h"

#include <algorithm>
#include <array>

#include "records/statistics.h"
#include "report/figures.h"
#include "report/observations.h"

namespace lockstep::report {
namespace {

constexpr std::array<const char*, 10> kColumns = {"accuracy",     "loss",        "seconds", "epoch_seconds",
                                                  "step_seconds", "cpu_percent", "memory",  "network_per_second",
                                                  "speed_up",     "efficiency"};

lab::TableSpec table_of(const Material& material, const std::string& group, const std::string& title) {
  lab::TableSpec table;
  table.name = group;
  table.title = title;
  table.filter.groups = {group};
  const Observations all = material.observations(table.filter);
  for (const Observation& each : all) {
    if (!each.run->plan.label.empty() && table.rows.empty()) table.rows.emplace_back("label");
  }
  for (const Observation& each : all) {
    for (const auto& [name, value] : each.run->plan.varied) {
      if (name != "seed" && std::find(table.rows.begin(), table.rows.end(), name) == table.rows.end())
        table.rows.push_back(name);
    }
  }
  if (table.rows.empty()) table.rows = {"group"};
  for (const char* field : kColumns) {
    const bool any =
        std::any_of(all.begin(), all.end(), [&](const Observation& o) { return records::known(o.number(field)); });
    if (any) table.columns.emplace_back(field);
  }
  if (table.columns.empty()) table.columns = {"accuracy", "seconds"};
  return table;
}

lab::PlotSpec plot(const std::string& group, const std::string& title, lab::PlotKind kind, const std::string& x,
                   std::vector<std::string> y) {
  lab::PlotSpec spec;
  spec.name = title;
  spec.title = capital(title);
  spec.kind = kind;
  spec.filter.groups = {group};
  spec.x = x;
  spec.y = std::move(y);
  return spec;
}

}  // namespace

lab::ReportSpec spec_of(const lab::Results& results) {
  lab::ReportSpec spec = results.experiment.report;
  if (!spec.tables.empty() || !spec.plots.empty()) return spec;
  const Material material(results);
  std::vector<std::string> groups;
  for (const lab::RunResult& run : results.runs) {
    if (std::find(groups.begin(), groups.end(), run.plan.group) == groups.end()) groups.push_back(run.plan.group);
  }
  for (const std::string& group : groups) {
    const std::string title = material.group_title(group);
    const std::string of = groups.size() > 1 ? title + ": " : "";
    spec.tables.push_back(table_of(material, group, title));
    spec.plots.push_back(plot(group, of + "accuracy", lab::PlotKind::curves, "epoch", {"accuracy"}));
    spec.plots.push_back(plot(group, of + "loss", lab::PlotKind::curves, "epoch", {"loss"}));
    spec.plots.push_back(plot(group, of + "where the time of a step goes", lab::PlotKind::phases, "", {}));
    spec.plots.push_back(plot(group, of + "CPU of the nodes", lab::PlotKind::usage, "", {"node_cpu_percent"}));
  }
  return spec;
}

}  // namespace lockstep::report
