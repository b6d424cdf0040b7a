#include "report/observations.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "lab/noise.h"
#include "records/statistics.h"

namespace lockstep::report {
namespace {

using records::known;
using records::kUnknown;

double measured(const lab::Measured& values, std::string_view field) {
  const auto found = values.find(field);
  return found == values.end() ? kUnknown : found->second;
}

/// Returns whether a case's label already tells the setting's value.
bool told_by_label(std::string_view setting) {
  return setting == "layout" || setting == "mode" || setting == "workers" || setting == "ps" || setting == "strategy" ||
         setting == "threads" || setting == "replicas" || setting == "hosts" || setting == "tls" ||
         setting == "insecure";
}

/// Values by name, in the order of their first value.
using ValuesByName = std::vector<std::pair<std::string, std::vector<std::string>>>;

void add_value(ValuesByName& names, const std::string& name, const std::string& value) {
  auto found = std::find_if(names.begin(), names.end(), [&](const auto& pair) { return pair.first == name; });
  if (found == names.end()) found = names.insert(names.end(), {name, {}});
  auto& values = found->second;
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

/// Returns the names and values in which the members of a case differ.
ValuesByName differing(const Case& each) {
  ValuesByName names;
  Fields settings;
  for (const Observation& member : each.members) {
    for (const auto& [name, value] : member.run->plan.varied) {
      if (name != "seed" && std::find(settings.begin(), settings.end(), name) == settings.end())
        settings.push_back(name);
    }
  }
  for (const Observation& member : each.members) {
    add_value(names, "group", member.run->plan.group);
    add_value(names, "label", member.run->plan.label);
    for (const std::string& name : settings) add_value(names, name, member.run->text(name));
    if (member.role != nullptr) add_value(names, "worker", member.role->role);
  }
  std::erase_if(names, [](const auto& pair) { return pair.second.size() < 2; });
  const bool labels = std::any_of(names.begin(), names.end(), [](const auto& pair) { return pair.first == "label"; });
  if (labels) std::erase_if(names, [](const auto& pair) { return told_by_label(pair.first); });
  return names;
}

/// Returns whether other programs on the machine can have changed the field.
bool depends_on_time(const lab::RunResult& run, std::string_view field) {
  const lab::FieldDef* def = lab::find_field(field);
  if (def == nullptr) return false;
  return def->varies == lab::Varies::time || run.text("mode") == "async" || !run.text("aggregate").empty() ||
         !run.plan.cluster.faults.empty() || number_of(lab::value_of(run.plan.settings, "seconds")) > 0;
}

bool with_server(const lab::RunResult& run, const std::string& node) {
  const auto& roles = run.measured.roles;
  return std::any_of(roles.begin(), roles.end(),
                     [&](const lab::RoleMeasured& r) { return r.node == node && r.role.starts_with("ps:"); });
}

/// Returns whether a worker or a machine meets the filter's conditions on such fields.
bool passes(const Observation& part, const lab::Filter& filter) {
  return std::all_of(filter.where.begin(), filter.where.end(), [&](const auto& condition) {
    if (!lab::of_part(condition.first)) return true;
    const std::string text = part.text(condition.first);
    return std::any_of(condition.second.begin(), condition.second.end(),
                       [&](const std::string& wanted) { return same_value(text, wanted); });
  });
}

std::string variation_key(const lab::RunResult& run) { return run.plan.key.substr(0, run.plan.key.rfind("-r")); }

/// Returns the variations with a run that was not disturbed.
std::set<std::string> calm_variations(const Observations& observations) {
  std::set<std::string> calm;
  for (const Observation& o : observations) {
    if (!lab::is_disturbed(o.run->measured.values)) calm.insert(variation_key(*o.run));
  }
  return calm;
}

}  // namespace

Stat stat_of(const std::vector<double>& values) {
  const std::vector<double> all = records::known_of(values);
  Stat stat{kUnknown, kUnknown, kUnknown, kUnknown, all.size()};
  if (all.empty()) return stat;
  stat.mean = records::mean(all);
  double squares = 0;
  for (const double value : all) squares += (value - stat.mean) * (value - stat.mean);
  stat.deviation = all.size() < 2 ? 0 : std::sqrt(squares / static_cast<double>(all.size() - 1));
  const auto [low, high] = std::minmax_element(all.begin(), all.end());
  stat.low = *low;
  stat.high = *high;
  return stat;
}

std::string Observation::text(std::string_view field) const {
  if (!lab::of_part(field)) return run->text(field);
  if (role == nullptr) return field == "node" ? run->text(field) : "";
  if (field == "with_server") return with_server(*run, role->node) ? "yes" : "no";
  return field == "node" ? role->node : role->role;
}

double Observation::number(std::string_view field) const {
  if (role != nullptr) {
    const double own = measured(role->values, field);
    return known(own) ? own : number_of(text(field));
  }
  const double value = derived == nullptr ? kUnknown : derived->number(*run, field);
  return known(value) ? value : run->number(field);
}

Stat Case::stat(std::string_view field) const {
  std::vector<double> values;
  for (const Observation& member : undisturbed(members, field)) values.push_back(member.number(field));
  return stat_of(values);
}

Material::Material(const lab::Results& results) : results_(results), derived_(results) {
  for (const lab::RunResult& run : results.runs) {
    if (run.state == lab::RunState::done) machines_[&run] = machines_of(run);
  }
}

Observations Material::observations(const lab::Filter& filter, lab::Per per) const {
  Observations result;
  for (const lab::RunResult& run : results_.runs) {
    if (run.state != lab::RunState::done || !lab::passes(run, filter)) continue;
    if (per == lab::Per::run) {
      result.push_back({&run, nullptr, &derived_});
      continue;
    }
    for (const lab::RoleMeasured& part : per == lab::Per::machine ? machines_.at(&run) : run.measured.roles) {
      const Observation observation{&run, &part, &derived_};
      if ((per == lab::Per::machine || is_trainer(part)) && passes(observation, filter)) result.push_back(observation);
    }
  }
  return result;
}

std::vector<lab::RoleMeasured> machines_of(const lab::RunResult& run) {
  static const std::set<std::string, std::less<>> sums{"memory", "process_cpu_percent", "disk_read", "disk_written",
                                                       "iterations"};
  static const std::set<std::string, std::less<>> of_nodes{
      "cpu_percent",          "cpu_max",           "node_memory",
      "node_memory_drop",     "network_received",  "network_sent",
      "network_per_second",   "network_max",       "network_sent_max",
      "network_received_max", "network_variation", "network_period",
      "loopback_received",    "loopback_sent",     "packets_received",
      "packets_sent",         "node_disk_read",    "node_disk_written",
      "throttled_share"};
  std::vector<lab::RoleMeasured> machines;
  for (const lab::RoleMeasured& role : run.measured.roles) {
    auto at = std::find_if(machines.begin(), machines.end(), [&](const auto& m) { return m.node == role.node; });
    if (at == machines.end()) at = machines.insert(machines.end(), {"", role.node, {}});
    at->role += (at->role.empty() ? "" : ", ") + role.role;
    for (const auto& [name, value] : role.values) {
      if (sums.contains(name)) at->values[name] += value;
      if (of_nodes.contains(name)) at->values.emplace(name, value);
    }
  }
  // Without nodes of their own, the traffic of roles is not that of their machine.
  if (machines.size() == 1 && run.measured.roles.size() > 1)
    std::erase_if(machines[0].values, [](const auto& value) { return value.first.starts_with("network_"); });
  std::sort(machines.begin(), machines.end(), [](const auto& a, const auto& b) {
    return std::pair(a.node.size(), a.node) < std::pair(b.node.size(), b.node);
  });
  return machines;
}

std::string Material::group_title(const std::string& group) const {
  for (const lab::Group& each : results_.experiment.groups) {
    if (each.name == group && !each.title.empty()) return each.title;
  }
  return group;
}

size_t Material::missing(const lab::Filter& filter) const {
  return static_cast<size_t>(std::count_if(results_.runs.begin(), results_.runs.end(), [&](const lab::RunResult& run) {
    return run.state != lab::RunState::done && lab::passes(run, filter);
  }));
}

size_t Material::failed(const lab::Filter& filter) const {
  return static_cast<size_t>(std::count_if(results_.runs.begin(), results_.runs.end(), [&](const lab::RunResult& run) {
    return run.state == lab::RunState::failed && lab::passes(run, filter);
  }));
}

std::string Material::missing_text(const lab::Filter& filter) const {
  constexpr size_t kMostNames = 4;
  const size_t all = missing(filter);
  if (all == 0) return "";
  std::vector<std::string> names;
  for (const lab::RunResult& run : results_.runs) {
    if (run.state != lab::RunState::failed || !lab::passes(run, filter)) continue;
    const std::string name = run.plan.label.empty() ? title_of(run) : run.plan.label;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (names.size() > kMostNames) {
    const size_t more = names.size() - kMostNames;
    names.resize(kMostNames);
    names.push_back(fmt::format("{} more", more));
  }
  const size_t broken = failed(filter);
  std::string why = broken > 0 ? fmt::format("{} failed ({})", broken, fmt::join(names, "; ")) : "";
  if (all > broken) why += fmt::format("{}{} not run yet", why.empty() ? "" : ", ", all - broken);
  return fmt::format("{} missing: {}.", all == 1 ? "1 run is" : fmt::format("{} runs are", all), why);
}

Observations undisturbed(const Observations& observations, std::string_view field) {
  if (std::none_of(observations.begin(), observations.end(),
                   [](const Observation& o) { return lab::is_disturbed(o.run->measured.values); }))
    return observations;
  const std::set<std::string> calm = calm_variations(observations);
  Observations left;
  for (const Observation& o : observations) {
    const bool out = lab::is_disturbed(o.run->measured.values) && calm.contains(variation_key(*o.run)) &&
                     depends_on_time(*o.run, field);
    if (!out) left.push_back(o);
  }
  return left;
}

std::string disturbed_note(const Observations& observations, const Fields& fields) {
  const std::set<std::string> calm = calm_variations(observations);
  std::set<const lab::RunResult*> out;
  std::set<const lab::RunResult*> used;
  for (const Observation& o : observations) {
    const bool matters = std::any_of(fields.begin(), fields.end(),
                                     [&](const std::string& field) { return depends_on_time(*o.run, field); });
    if (!matters || !lab::is_disturbed(o.run->measured.values)) continue;
    (calm.contains(variation_key(*o.run)) ? out : used).insert(o.run);
  }
  const auto many = [](size_t count) {
    return count == 1 ? std::string("1 disturbed run") : fmt::format("{} disturbed runs", count);
  };
  std::string text;
  if (!out.empty()) text = fmt::format("{} {} left out.", many(out.size()), out.size() == 1 ? "is" : "are");
  if (used.empty()) return text;
  return text + fmt::format("{}{} {}, as there {} no other: {}.", text.empty() ? "" : " ", many(used.size()),
                            used.size() == 1 ? "counts" : "count", "is",
                            lab::disturbed_text((*used.begin())->measured.values));
}

std::vector<Case> cases_by(const Observations& observations, const Fields& fields) {
  std::vector<Case> cases;
  for (const Observation& observation : observations) {
    Key key;
    for (const std::string& field : fields) key.push_back(observation.text(field));
    auto found = std::find_if(cases.begin(), cases.end(), [&](const Case& known_case) {
      return std::equal(
          key.begin(), key.end(), known_case.key.begin(), known_case.key.end(),
          [](const std::string& a, const std::string& b) { return a == b || number_of(a) == number_of(b); });
    });
    if (found == cases.end()) {
      cases.push_back({std::move(key), {}});
      found = cases.end() - 1;
    }
    found->members.push_back(observation);
  }
  return cases;
}

std::vector<Case> variations(const Observations& observations) {
  std::vector<Case> cases;
  for (const Observation& observation : observations) {
    const lab::RunPlan& plan = observation.run->plan;
    Key key{plan.group, plan.label};
    for (const auto& [name, value] : plan.varied) {
      if (name != "seed") key.push_back(value);
    }
    for (const auto& [name, value] : plan.tags) key.push_back(value);
    if (observation.role != nullptr) key.push_back(observation.role->role);
    const auto found = std::find_if(cases.begin(), cases.end(), [&](const Case& c) { return c.key == key; });
    if (found == cases.end()) {
      cases.push_back({std::move(key), {observation}});
    } else {
      found->members.push_back(observation);
    }
  }
  return cases;
}

std::string pooled_text(const std::vector<Case>& cases) {
  constexpr size_t kListed = 6;
  ValuesByName names;
  for (const Case& each : cases) {
    for (const auto& [name, values] : differing(each)) {
      for (const std::string& value : values) add_value(names, name, value);
    }
  }
  std::string text;
  for (auto& [name, values] : names) {
    if (name == "label") std::erase(values, "");
    std::replace(values.begin(), values.end(), std::string(), std::string("by default"));
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == '_' || c == '-'; }, ' ');
    const std::string all = values.size() > kListed ? fmt::format("({} values)", values.size())
                                                    : fmt::format("{}", fmt::join(values, ", "));
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", name, all);
  }
  return text;
}

void sort_by_number(std::vector<Case>& cases, size_t place) {
  const auto number = [&](const Case& c) { return number_of(c.key.at(place)); };
  if (!std::all_of(cases.begin(), cases.end(), [&](const Case& c) { return known(number(c)); })) return;
  std::stable_sort(cases.begin(), cases.end(), [&](const Case& a, const Case& b) { return number(a) < number(b); });
}

double number_of(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return !text.empty() && error == std::errc() && stop == end ? value : kUnknown;
}

bool same_value(std::string_view a, std::string_view b) {
  if (a == b || number_of(a) == number_of(b)) return true;
  constexpr std::string_view kWorker = "worker:";
  return (a.starts_with(kWorker) && a.substr(kWorker.size()) == b) ||
         (b.starts_with(kWorker) && b.substr(kWorker.size()) == a);
}

std::string describe(const Fields& fields, const Key& key) {
  std::string text;
  for (size_t i = 0; i < fields.size() && i < key.size(); ++i) {
    if (key[i].empty()) continue;
    if (!text.empty()) text += ", ";
    if (fields[i] == "with_server") {
      text += key[i] == "yes" ? "the server on the machine" : "no server on the machine";
      continue;
    }
    const bool plain = fields[i] == "label" || fields[i] == "group" || lab::of_part(fields[i]) || fields[i] == "by";
    std::string name = fields[i];
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == '_' || c == '-'; }, ' ');
    text += plain ? key[i] : name + " " + key[i];
  }
  return text;
}

bool several_groups(const Observations& observations) {
  return std::any_of(observations.begin(), observations.end(),
                     [&](const Observation& o) { return o.run->plan.group != observations.front().run->plan.group; });
}

std::string title_of(const lab::RunResult& run, bool with_group) {
  Fields fields;
  Key key;
  if (with_group) {
    fields.emplace_back("group");
    key.push_back(run.plan.group);
  }
  if (!run.plan.label.empty()) {
    fields.emplace_back("label");
    key.push_back(run.plan.label);
  }
  for (const auto& [name, value] : run.plan.varied) {
    if (name == "seed" || (!run.plan.label.empty() && told_by_label(name))) continue;
    fields.push_back(name);
    key.push_back(value);
  }
  const std::string text = describe(fields, key);
  return text.empty() ? run.plan.group : text;
}

}  // namespace lockstep::report
