#include "lab/report_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/suggest.h"
#include "lab/expansion.h"
#include "lab/fields.h"
#include "lockstep/error.h"
#include "observe/monitor/sampler.h"
#include "settings/settings.h"

namespace lockstep::lab {
namespace {

using Kind = YamlNode::Kind;

constexpr size_t kLongestName = 100;
const Names kReportedKeys{"reported", "reported_columns", "reported_where"};

Names with(Names keys, const Names& more) {
  keys.insert(keys.end(), more.begin(), more.end());
  return keys;
}

constexpr std::array<std::pair<std::string_view, PlotKind>, 7> kPlotKinds{{{"curves", PlotKind::curves},
                                                                           {"lines", PlotKind::lines},
                                                                           {"bars", PlotKind::bars},
                                                                           {"speed_up", PlotKind::speed_up},
                                                                           {"usage", PlotKind::usage},
                                                                           {"phases", PlotKind::phases},
                                                                           {"timeline", PlotKind::timeline}}};

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Returns whether monitor.csv has such a column: the columns of every machine, and those of interfaces and GPUs by the
/// form of their names.
bool is_monitor_column(const std::string& name) {
  const auto fixed = observe::fixed_columns();
  if (std::find(fixed.begin(), fixed.end(), name) != fixed.end()) return true;
  if (name.starts_with("gpu")) return true;
  return name.find('_') != std::string::npos && (name.ends_with("_received") || name.ends_with("_sent"));
}

}  // namespace

bool ReportReader::is_set_field(const std::string& name, bool per_worker) const {
  if (name == "label" || name == "group" || name == "repeat") return true;
  if (per_worker && of_part(name)) return true;
  if (contains(vocabulary_.tags, name) || settings::find_setting(name) != nullptr) return true;
  return name.starts_with("options.") && name.size() > 8;
}

std::string ReportReader::hint(const std::string& name, Wanted wanted, bool per_worker) const {
  Names all;
  if (wanted != Wanted::measured) {
    all = {"label", "group", "repeat"};
    if (per_worker) all.insert(all.end(), {"worker", "role", "node", "with_server"});
    all.insert(all.end(), vocabulary_.tags.begin(), vocabulary_.tags.end());
    for (const settings::SettingDef& def : settings::settings_table()) all.push_back(settings::yaml_key(def));
  }
  if (wanted != Wanted::set) {
    for (const FieldDef& def : lab::fields()) all.emplace_back(def.name);
  }
  const std::string nearest = base::nearest(name, all);
  if (!nearest.empty()) return fmt::format(" (did you mean '{}'?)", nearest);
  if (wanted == Wanted::set) return "; it takes a setting, a tag, label, group or repeat";
  return "; docs/experiments.md lists all fields";
}

std::string ReportReader::field(const YamlNode& node, Wanted wanted, bool per_worker) const {
  const std::string name = reader_.text(node, "a field");
  const bool measured = find_field(name) != nullptr;
  const bool set = is_set_field(name, per_worker);
  const bool fits = wanted == Wanted::any ? measured || set : (wanted == Wanted::set ? set : measured);
  if (!fits) {
    const std::string shown = base::shown(name);
    const std::string what = wanted == Wanted::measured ? "measured field" : "field";
    reader_.fail(node, fmt::format("unknown {} '{}'{}", what, shown, hint(shown, wanted, per_worker)));
  }
  const settings::SettingDef* def = settings::find_setting(name);
  return def != nullptr && !measured ? settings::yaml_key(*def) : name;
}

Names ReportReader::fields(const YamlNode& map, const char* key, Wanted wanted, bool per_worker) const {
  Names names;
  const YamlNode* node = Reader::find(map, key);
  if (node == nullptr) return names;
  for (const YamlNode* item : reader_.one_or_more(*node, key)) {
    std::string name = field(*item, wanted, per_worker);
    if (contains(names, name)) reader_.fail(*item, fmt::format("{}: '{}' appears twice", key, name));
    names.push_back(std::move(name));
  }
  return names;
}

Per ReportReader::per(const YamlNode& node) const {
  const YamlNode* per = Reader::find(node, "per");
  if (per == nullptr) return Per::run;
  const std::string text = reader_.text(*per, "per");
  if (text == "worker") return Per::worker;
  if (text == "machine") return Per::machine;
  if (text != "run")
    reader_.fail(*per, fmt::format("per: '{}' is not allowed; it takes run, worker or machine", base::shown(text)));
  return Per::run;
}

void ReportReader::add_where(const YamlNode& map, const char* key, Filter& filter) const {
  const YamlNode* node = Reader::find(map, key);
  if (node == nullptr) return;
  reader_.check_map(*node, key);
  for (size_t i = 0; i < node->keys.size(); ++i) {
    const std::string name = field(node->keys[i], Wanted::set, true);
    Names values;
    for (const YamlNode* value : reader_.one_or_more(node->items[i], name)) {
      const bool lists = name == "repeat" || name == "emulate" || name == "faults";
      values.push_back(lists ? value->text : canonical(reader_, *value, name, value->text));
    }
    if (name == "group") {
      filter.groups = values;
    } else {
      filter.where.emplace_back(name, std::move(values));
    }
  }
}

void ReportReader::check_parts(const YamlNode& node, const Filter& filter, Per per) const {
  if (per != Per::run) return;
  for (const auto& [name, values] : filter.where) {
    if (of_part(name))
      reader_.fail(node,
                   fmt::format("where: '{}' needs `per: worker` or `per: machine`, as runs have no {}", name, name));
  }
}

Filter ReportReader::filter(const YamlNode& node) const {
  Filter result;
  if (const YamlNode* group = Reader::find(node, "group")) {
    for (const YamlNode* item : reader_.one_or_more(*group, "group")) {
      if (!contains(vocabulary_.groups, item->text)) {
        const std::string shown = base::shown(item->text);
        reader_.fail(*item, fmt::format("unknown group '{}'{}", shown, base::hint(shown, vocabulary_.groups)));
      }
      result.groups.push_back(item->text);
    }
  }
  add_where(node, "where", result);
  return result;
}

std::string ReportReader::unique_name(const YamlNode& node, const char* what, std::set<std::string>& taken) {
  const YamlNode* name = node.find("name");
  if (name == nullptr) reader_.fail(node, fmt::format("{} needs a name", what));
  std::string text = reader_.text(*name, "name");
  if (text.empty() || text.size() > kLongestName) {
    reader_.fail(
        *name, fmt::format("name: '{}' is not allowed; it takes 1 to {} characters", base::shown(text), kLongestName));
  }
  if (!taken.insert(text).second) reader_.fail(*name, fmt::format("two entries are named '{}'", text));
  return text;
}

TableSpec ReportReader::table(const YamlNode& node) {
  reader_.check_map(node, "a table",
                    with({"name", "title", "text", "group", "where", "per", "rows", "columns"}, kReportedKeys));
  TableSpec made;
  made.title = reader_.text_of(node, "title");
  made.text = reader_.text_of(node, "text");
  made.per = per(node);
  made.filter = filter(node);
  check_parts(node, made.filter, made.per);
  made.rows = fields(node, "rows", Wanted::set, made.per != Per::run);
  made.columns = fields(node, "columns", Wanted::any, made.per != Per::run);
  if (made.rows.empty()) reader_.fail(node, "a table needs rows: fields that tell its rows apart");
  if (made.columns.empty()) reader_.fail(node, "a table needs columns: measured fields");
  reported(node, made.reported, made.reported_columns, made.reported_where, with(made.rows, made.columns),
           made.per != Per::run);
  return made;
}

void ReportReader::plot_values(const YamlNode& node, PlotSpec& plot) {
  const bool curves = plot.kind == PlotKind::curves;
  const bool usage = plot.kind == PlotKind::usage;
  const YamlNode* x = Reader::find(node, "x");
  const YamlNode* y = Reader::find(node, "y");
  if (x != nullptr) {
    const std::string text = reader_.text(*x, "x");
    const bool within = text == "step" || text == "epoch" || text == "seconds" || text == "iteration";
    if (curves && !within) {
      reader_.fail(
          *x, fmt::format("x: '{}' is not allowed; curves take step, epoch, seconds or iteration", base::shown(text)));
    }
    plot.x = curves || usage ? text : field(*x, Wanted::any, plot.per != Per::run);
  } else if (curves) {
    plot.x = "epoch";
  }
  if (!curves && !usage) {
    plot.y = fields(node, "y", Wanted::any, plot.per != Per::run);
    return;
  }
  if (y == nullptr) reader_.fail(node, "a plot of this kind needs y");
  for (const YamlNode* item : reader_.one_or_more(*y, "y")) {
    const bool fits = curves ? item->text == "loss" || item->text == "accuracy" || item->text == "train_loss"
                             : is_monitor_column(item->text);
    if (!fits) {
      reader_.fail(*item, fmt::format("y: '{}' is not allowed; it takes {}", base::shown(item->text),
                                      curves ? "loss, accuracy or train_loss"
                                             : "a column of monitor.csv (docs/monitor.md), such as cpu_percent"));
    }
    plot.y.push_back(item->text);
  }
}

PlotSpec ReportReader::plot(const YamlNode& node) {
  reader_.check_map(node, "a plot",
                    with({"name", "title", "text", "kind", "group", "where", "per", "x", "y", "y2", "series", "facets",
                          "roles", "log_x", "log_y"},
                         kReportedKeys));
  PlotSpec made;
  made.title = reader_.text_of(node, "title");
  made.text = reader_.text_of(node, "text");
  const YamlNode* kind = Reader::find(node, "kind");
  Names kinds;
  for (const auto& [name, value] : kPlotKinds) kinds.emplace_back(name);
  if (kind == nullptr) reader_.fail(node, "a plot needs a kind" + base::hint("", kinds));
  const auto found = std::find(kinds.begin(), kinds.end(), reader_.text(*kind, "kind"));
  if (found == kinds.end()) {
    const std::string shown = base::shown(kind->text);
    reader_.fail(*kind, fmt::format("kind: '{}' is not a kind of plot{}", shown, base::hint(shown, kinds)));
  }
  made.kind = kPlotKinds[static_cast<size_t>(found - kinds.begin())].second;
  made.per = per(node);
  made.filter = filter(node);
  const bool fields_of_runs = made.kind == PlotKind::lines || made.kind == PlotKind::bars;
  if (made.per == Per::machine && !fields_of_runs)
    reader_.fail(*node.find("per"), "per: machine is only for tables, lines, bars and tests");
  plot_values(node, made);
  check_parts(node, made.filter,
              fields_of_runs && of_part(made.x) ? Per::worker
              : fields_of_runs                  ? made.per
                                                : Per::run);
  made.y2 = fields(node, "y2", Wanted::any, made.per != Per::run);
  made.series = fields(node, "series", Wanted::set, true);
  made.facets = fields(node, "facets", Wanted::set, true);
  if (const YamlNode* roles = Reader::find(node, "roles")) {
    for (const YamlNode* role : reader_.one_or_more(*roles, "roles")) made.roles.push_back(role->text);
  }
  made.log_x = reader_.flag_of(node, "log_x");
  made.log_y = reader_.flag_of(node, "log_y");
  const bool over_field = made.kind == PlotKind::lines || made.kind == PlotKind::bars;
  if (over_field && made.x.empty()) reader_.fail(node, "a plot of this kind needs x: a field");
  if (over_field && made.y.empty()) reader_.fail(node, "a plot of this kind needs y: measured fields");
  Names used = with(with(made.y, made.y2), with(made.series, made.facets));
  if (!made.x.empty()) used.push_back(made.x);
  reported(node, made.reported, made.reported_columns, made.reported_where, used, true);
  return made;
}

void ReportReader::reported(const YamlNode& node, std::string& file, Pairs& columns, Pairs& where, const Names& used,
                            bool per_worker) {
  const YamlNode* at = Reader::find(node, "reported");
  if (at == nullptr) {
    for (const char* key : {"reported_columns", "reported_where"}) {
      if (const YamlNode* lone = Reader::find(node, key))
        reader_.fail(*lone, fmt::format("{} is only allowed with `reported`", key));
    }
    return;
  }
  file = reader_.text(*at, "reported");
  const Names there = reported_.columns(*at);
  const auto check = [&](const YamlNode& name) {
    const std::string shown = base::shown(reader_.text(name, "a column"));
    if (!contains(there, name.text)) {
      reader_.fail(name, fmt::format("{} has no column '{}'{}", file, shown, base::hint(shown, there)));
    }
  };
  if (const YamlNode* map = Reader::find(node, "reported_columns")) {
    reader_.check_map(*map, "reported_columns");
    for (size_t i = 0; i < map->keys.size(); ++i) {
      check(map->items[i]);
      columns.emplace_back(field(map->keys[i], Wanted::any, per_worker), map->items[i].text);
    }
  }
  for (const std::string& name : used) {
    const auto named = [&](const auto& pair) { return pair.first == name; };
    if (contains(there, name) && std::none_of(columns.begin(), columns.end(), named)) columns.emplace_back(name, name);
  }
  if (columns.empty())
    reader_.fail(*at, fmt::format("{} has no column for any field; name them in reported_columns", file));
  if (const YamlNode* map = Reader::find(node, "reported_where")) {
    reader_.check_map(*map, "reported_where");
    for (size_t i = 0; i < map->keys.size(); ++i) {
      check(map->keys[i]);
      where.emplace_back(map->keys[i].text, reader_.text(map->items[i], map->keys[i].text));
    }
  }
}

ReportSpec ReportReader::read(const YamlNode* report) {
  ReportSpec spec;
  if (report == nullptr) return spec;
  reader_.check_map(*report, "report", {"tables", "plots", "findings"});
  const auto each = [&](const char* key, const char* what, auto&& read_one, auto& into) {
    const YamlNode* list = Reader::find(*report, key);
    std::set<std::string> names;
    if (list == nullptr) return;
    if (!list->is(Kind::list))
      reader_.fail(*list, fmt::format("{} must be a list, not {}", key, base::describe(*list)));
    for (const YamlNode& node : list->items) {
      reader_.check_map(node, what);
      into.push_back(read_one(node));
      into.back().name = unique_name(node, what, names);
    }
  };
  each(
      "tables", "a table", [&](const YamlNode& n) { return table(n); }, spec.tables);
  each(
      "plots", "a plot", [&](const YamlNode& n) { return plot(n); }, spec.plots);
  each(
      "findings", "a finding", [&](const YamlNode& n) { return finding(n); }, spec.findings);
  return spec;
}

}  // namespace lockstep::lab
