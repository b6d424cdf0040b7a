// Exports the results of an experiment as CSV and JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lab_findings.h"
#include "lab_json.h"
#include "lab_results.h"
#include "settings/settings.h"

namespace lockstep::tools {
namespace {

using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

/// Formats a CSV cell, with quotes if needed.
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string row_text(const Names& cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) line += (i == 0 ? "" : ",") + cell(cells[i]);
  return line + "\n";
}

void add_name(Names& names, const std::string& name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

std::string number_text(double value) { return fmt::format("{}", value); }

/// The columns that some run has, besides the fixed ones.
struct Columns {
  Names tags;
  Names settings;  ///< by their names in the settings table
  Names measured;
};

Columns columns_of(const lab::Results& results, bool per_role) {
  Columns columns;
  for (const lab::RunResult& run : results.runs) {
    for (const auto& tag : run.plan.tags) add_name(columns.tags, tag.first);
    for (const auto& setting : run.plan.settings) add_name(columns.settings, setting.first);
  }
  for (const lab::FieldDef& def : lab::fields()) {
    const std::string name(def.name);
    const bool there = std::any_of(results.runs.begin(), results.runs.end(), [&](const lab::RunResult& run) {
      if (!per_role) return run.measured.values.contains(name);
      return std::any_of(run.measured.roles.begin(), run.measured.roles.end(),
                         [&](const lab::RoleMeasured& role) { return role.values.contains(name); });
    });
    if (there) columns.measured.push_back(name);
  }
  return columns;
}

std::string setting_column(const std::string& name) {
  const settings::SettingDef* def = settings::find_setting(name);
  return "setting." + (def == nullptr ? name : settings::yaml_key(*def));
}

Names fixed_cells(const lab::RunResult& run) {
  return {run.plan.key, run.plan.group, run.plan.label, std::to_string(run.plan.repeat), std::string(name(run.state)),
          run.reason,   run.folder};
}

void add_measured(Names& cells, const Columns& columns, const lab::Measured& values) {
  for (const std::string& name : columns.measured) {
    const auto found = values.find(name);
    cells.push_back(found == values.end() ? "" : number_text(found->second));
  }
}

Json measured_json(const lab::Measured& values) {
  Json object = Json::object();
  for (const lab::FieldDef& def : lab::fields()) {
    const auto found = values.find(def.name);
    if (found != values.end()) object[std::string(def.name)] = found->second;
  }
  return object;
}

}  // namespace

std::string results_csv(const lab::Results& results, bool per_role) {
  const Columns columns = columns_of(results, per_role);
  Names header{"key", "group", "label", "repeat", "state", "reason", "folder"};
  if (per_role) header.insert(header.end(), {"role", "node"});
  for (const std::string& name : columns.tags) header.push_back("tag." + name);
  for (const std::string& name : columns.settings) header.push_back(setting_column(name));
  header.insert(header.end(), {"emulate", "faults", "hosts"});
  header.insert(header.end(), columns.measured.begin(), columns.measured.end());
  std::string text = row_text(header);
  for (const lab::RunResult& run : results.runs) {
    Names set;
    for (const std::string& name : columns.tags) set.push_back(lab::value_of(run.plan.tags, name));
    for (const std::string& name : columns.settings) set.push_back(lab::value_of(run.plan.settings, name));
    set.insert(set.end(), {run.plan.cluster.emulate, run.plan.cluster.faults, run.plan.cluster.hosts});
    const auto add_row = [&](const Names& who, const lab::Measured& values) {
      Names cells = fixed_cells(run);
      cells.insert(cells.end(), who.begin(), who.end());
      cells.insert(cells.end(), set.begin(), set.end());
      add_measured(cells, columns, values);
      text += row_text(cells);
    };
    if (!per_role) add_row({}, run.measured.values);
    if (per_role && run.measured.roles.empty()) add_row({"", ""}, {});  // a row that shows its failure
    for (const lab::RoleMeasured& role : run.measured.roles) {
      if (per_role) add_row({role.role, role.node}, role.values);
    }
  }
  return text;
}

std::string long_csv(const lab::Results& results) {
  std::string text = "key,role,field,value\n";
  const auto add = [&](const lab::RunResult& run, const std::string& role, const lab::Measured& values) {
    for (const auto& [field, value] : values) text += row_text({run.plan.key, role, field, number_text(value)});
  };
  for (const lab::RunResult& run : results.runs) {
    add(run, "", run.measured.values);
    for (const lab::RoleMeasured& role : run.measured.roles) add(run, role.role, role.values);
  }
  return text;
}

std::string results_json(const lab::Results& results, bool per_role) {
  Json runs = Json::array();
  for (const lab::RunResult& run : results.runs) {
    Json item = {{"key", run.plan.key},
                 {"group", run.plan.group},
                 {"label", run.plan.label},
                 {"repeat", run.plan.repeat},
                 {"state", name(run.state)},
                 {"reason", run.reason},
                 {"folder", run.folder},
                 {"started", run.started},
                 {"ended", run.ended},
                 {"settings", as_json(run.plan.settings)},
                 {"tags", as_json(run.plan.tags)},
                 {"emulate", run.plan.cluster.emulate},
                 {"faults", run.plan.cluster.faults},
                 {"hosts", run.plan.cluster.hosts},
                 {"measured", measured_json(run.measured.values)}};
    if (per_role) {
      Json roles = Json::array();
      for (const lab::RoleMeasured& role : run.measured.roles) {
        roles.push_back({{"role", role.role}, {"node", role.node}, {"measured", measured_json(role.values)}});
      }
      item["roles"] = roles;
    }
    runs.push_back(std::move(item));
  }
  const lab::Environment& e = results.environment;
  const Json all = {{"experiment", results.experiment.name},
                    {"scale", results.experiment.scale},
                    {"title", results.experiment.title},
                    {"command", results.command},
                    {"environment",
                     {{"program", e.program},
                      {"host", e.host},
                      {"system", e.system},
                      {"processor", e.processor},
                      {"cores", e.cores},
                      {"memory_bytes", e.memory_bytes},
                      {"compiler", e.compiler}}},
                    {"runs", runs},
                    {"findings", findings_json(results)}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lockstep::tools
