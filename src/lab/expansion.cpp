#include "lab/expansion.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>

#include "lab/fields.h"
#include "lab/run_check.h"
#include "lab/run_key.h"
#include "lockstep/error.h"
#include "settings/settings.h"

namespace lockstep::lab {
namespace {

using Kind = YamlNode::Kind;

constexpr int kMostRepeats = 1000;
constexpr int kMostWarmUps = 10;
const Names kOfCase{"label", "tags", "repeats", "cluster", "command", "figures", "deadline", "logs"};

struct Case {
  std::string label;
  Values tags;
  int repeats = 1;
  GivenCluster cluster;
  GivenGuest guest;
  Layer settings;
  const YamlNode* at = nullptr;
};

/// One value of a grid dimension; a map of options stands for several settings.
struct Dimension {
  std::string name;
  std::vector<Layer> values;
};

void lay(Layer& below, const Layer& above) {
  for (const GivenSetting& given : above) {
    const auto found =
        std::find_if(below.begin(), below.end(), [&](const GivenSetting& g) { return g.name == given.name; });
    if (found == below.end()) {
      below.push_back(given);
    } else {
      *found = given;
    }
  }
}

bool gives(const Layer& layer, std::string_view name) {
  return std::any_of(layer.begin(), layer.end(), [&](const GivenSetting& g) { return g.name == name; });
}

Values read_tags(const Reader& reader, const YamlNode& map, Values tags) {
  const YamlNode* node = Reader::find(map, "tags");
  if (node == nullptr) return tags;
  reader.check_map(*node, "tags");
  for (size_t i = 0; i < node->keys.size(); ++i) {
    const std::string name = reader.simple_name(node->keys[i], "a tag");
    static const std::set<std::string, std::less<>> taken{"label", "group", "repeat"};
    if (taken.contains(name) || of_part(name) || settings::find_setting(name) != nullptr ||
        find_field(name) != nullptr) {
      reader.fail(node->keys[i], fmt::format("a tag cannot be called '{}': a field has that name", name));
    }
    const std::string value = reader.text(node->items[i], name);
    const auto found = std::find_if(tags.begin(), tags.end(), [&](const auto& t) { return t.first == name; });
    if (found == tags.end()) {
      tags.emplace_back(name, value);
    } else {
      found->second = value;
    }
  }
  return tags;
}

int read_repeats(const Reader& reader, const YamlNode& map, int above) {
  const YamlNode* node = Reader::find(map, "repeats");
  return node == nullptr ? above : reader.whole(*node, "repeats", 1, kMostRepeats);
}

/// Reads the values of one grid key: YAML texts, or maps of options.
Dimension read_dimension(const Reader& reader, const YamlNode& key, const YamlNode& node) {
  Dimension dimension{key.text, {}};
  std::vector<const YamlNode*> values;
  if (node.is(Kind::list)) {
    for (const YamlNode& item : node.items) values.push_back(&item);
  } else {
    values.push_back(&node);
  }
  if (values.empty())
    reader.fail(node, fmt::format("{} in the grid is an empty list; give at least one value", key.text));
  std::set<std::string> seen;
  for (const YamlNode* value : values) {
    YamlNode single{Kind::map, value->line, value->column};
    single.keys.push_back(key);
    single.items.push_back(*value);
    Layer layer = read_settings(reader, single);
    std::string all;
    for (GivenSetting& given : layer) {
      given.at = value;
      all += given.name + "=" + given.value + ";";
    }
    if (!seen.insert(all).second) {
      reader.fail(*value, fmt::format("{}: '{}' is in the grid twice", key.text, base::shown(value->text)));
    }
    dimension.values.push_back(std::move(layer));
  }
  return dimension;
}

std::vector<Dimension> read_grid(const Reader& reader, const YamlNode& map) {
  std::vector<Dimension> grid;
  const YamlNode* node = Reader::find(map, "grid");
  if (node == nullptr) return grid;
  reader.check_map(*node, "grid");
  if (node->keys.empty())
    reader.fail(*node, "the grid is empty; give a setting with a list of values, or leave it out");
  for (size_t i = 0; i < node->keys.size(); ++i) {
    const YamlNode& value = node->items[i];
    if (value.is(Kind::null))
      reader.fail(node->keys[i], fmt::format("{} in the grid has no values", node->keys[i].text));
    if (value.is(Kind::scalar) && value.text == "off") continue;
    grid.push_back(read_dimension(reader, node->keys[i], value));
  }
  return grid;
}

struct GroupSource {
  const YamlNode* at = nullptr;
  std::string name;
  std::string title;
  Layer base;
  std::vector<Dimension> grid;
  std::vector<Case> cases;  ///< at least one
  int warm_up = 0;
  bool local = false;
};

std::vector<Case> read_cases(const Reader& reader, const YamlNode& map, const Case& plain,
                             const std::vector<Dimension>& grid) {
  const YamlNode* node = Reader::find(map, "cases");
  if (node == nullptr) return {plain};
  std::vector<Case> cases;
  std::set<std::string> labels;
  for (const YamlNode& item : reader.list(*node, "cases")) {
    reader.check_map(item, "a case");
    Case made = plain;
    made.at = &item;
    made.label = reader.text_of(item, "label");
    if (!made.label.empty() && !labels.insert(made.label).second) {
      reader.fail(*item.find("label"), fmt::format("label '{}' appears twice", base::shown(made.label)));
    }
    made.tags = read_tags(reader, item, made.tags);
    made.repeats = read_repeats(reader, item, made.repeats);
    made.cluster = read_cluster(reader, item, made.cluster);
    made.guest = read_guest(reader, item, made.guest);
    made.settings = read_settings(reader, item, kOfCase);
    for (const Dimension& dimension : grid) {
      for (const GivenSetting& given : dimension.values.front()) {
        if (gives(made.settings, given.name)) reader.fail(item, fmt::format("{} is already in the grid", given.name));
      }
    }
    cases.push_back(std::move(made));
  }
  return cases;
}

GroupSource read_group(const Reader& reader, const YamlNode& node, const Common& common, bool of_list,
                       const std::string& name) {
  GroupSource group;
  group.at = &node;
  group.name = name;
  group.title = of_list ? reader.text_of(node, "title") : "";
  group.base = common.base;
  Case plain;
  plain.at = &node;
  plain.repeats = common.repeats;
  plain.cluster = common.cluster;
  group.warm_up = common.warm_up;
  group.local = common.local;
  if (of_list) {
    if (const YamlNode* base = Reader::find(node, "base")) lay(group.base, read_settings(reader, *base));
    plain.repeats = read_repeats(reader, node, plain.repeats);
    plain.cluster = read_cluster(reader, node, plain.cluster);
    if (const YamlNode* warm = Reader::find(node, "warm_up")) {
      group.warm_up = reader.whole(*warm, "warm_up", 0, kMostWarmUps);
    }
  }
  plain.guest = read_guest(reader, node, {});
  plain.tags = read_tags(reader, node, {});
  group.grid = read_grid(reader, node);
  group.cases = read_cases(reader, node, plain, group.grid);
  return group;
}

std::vector<GroupSource> read_groups(const Reader& reader, const YamlNode& file, const Common& common) {
  const YamlNode* list = file.find("groups");
  if (list == nullptr || list->is(Kind::null)) {
    return {read_group(reader, file, common, false, file.find("name")->text)};
  }
  for (const char* key : {"grid", "cases", "tags", "command", "figures", "deadline", "logs"}) {
    if (const YamlNode* both = Reader::find(file, key)) {
      reader.fail(*both, fmt::format("{} at the top level cannot be combined with groups; move it into a group", key));
    }
  }
  std::vector<GroupSource> groups;
  std::set<std::string> names;
  for (const YamlNode& node : reader.list(*list, "groups")) {
    reader.check_map(node, "a group",
                     {"name", "title", "base", "cluster", "repeats", "warm_up", "grid", "cases", "tags", "command",
                      "figures", "deadline", "logs"});
    const YamlNode* name = node.find("name");
    if (name == nullptr) reader.fail(node, "a group needs a name");
    if (!names.insert(reader.simple_name(*name, "name")).second) {
      reader.fail(*name, fmt::format("group '{}' appears twice", name->text));
    }
    groups.push_back(read_group(reader, node, common, true, name->text));
  }
  return groups;
}

/// Returns whether several processes use a setting that a single process refuses.
bool is_of_cluster(const std::string& name) {
  const settings::SettingDef* def = settings::find_setting(name);
  return def != nullptr && def->group == "Cluster" && name != "workers" && name != "layout" && name != "restarts" &&
         name != "insecure";
}

/// Drops the number of roles: with hosts, the cluster file says where each role runs, whatever `base` says.
void drop_places(Layer& all, const Layer& own) {
  std::erase_if(all, [&](const GivenSetting& g) { return is_place(g.name) && !gives(own, g.name); });
}

/// Moves a run from hosts to this machine: keeps the roles, drops settings for the hosts' files and connections.
void take_from_hosts(Layer& all, const std::string& layout, const YamlNode* at) {
  const bool metrics = gives(all, "metrics");  // its address may need `insecure` too
  std::erase_if(all, [&](const GivenSetting& g) { return g.name == "tls" || (g.name == "insecure" && !metrics); });
  lay(all, {{"layout", layout, at}});
}

/// Drops cluster settings of `base` from runs that have no cluster.
void drop_cluster_settings(Layer& all, const ClusterPlan& cluster, const Layer& own) {
  const auto value = [&](std::string_view name) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const GivenSetting& g) { return g.name == name; });
    return found == all.end() || found->value == "0" ? "" : found->value;
  };
  if (!value("workers").empty() || !value("layout").empty() || !value("replicas").empty()) return;
  if (!cluster.hosts.empty()) return;
  std::erase_if(all, [&](const GivenSetting& g) { return is_of_cluster(g.name) && !gives(own, g.name); });
}

Variation combine(const Reader& reader, const GroupSource& group, const Case& chosen,
                  const std::vector<size_t>& places) {
  Layer own;
  for (size_t d = 0; d < places.size(); ++d) lay(own, group.grid[d].values[places[d]]);
  lay(own, chosen.settings);
  Layer all = group.base;
  lay(all, own);
  Variation made;
  made.at = chosen.at;
  made.cluster = chosen.cluster;
  made.guest = chosen.guest;
  made.plan.guest = chosen.guest.plan;
  made.plan.cluster = group.local ? local_of(chosen.cluster.plan) : chosen.cluster.plan;
  if (!chosen.cluster.plan.hosts.empty()) {
    drop_places(all, own);
    if (group.local) take_from_hosts(all, layout_of(reader, chosen.cluster), chosen.cluster.hosts);
  }
  drop_cluster_settings(all, made.plan.cluster, own);
  made.plan.group = group.name;
  made.plan.label = chosen.label;
  made.plan.tags = chosen.tags;
  made.plan.repeat = chosen.repeats;
  for (const GivenSetting& given : all) {
    made.plan.settings.emplace_back(given.name, given.value);
    if (given.name == "model") made.model = given.at;
  }
  return made;
}

std::vector<Variation> variations_of(const Reader& reader, const GroupSource& group) {
  std::vector<Variation> made;
  for (const Case& chosen : group.cases) {
    std::vector<size_t> places(group.grid.size(), 0);
    for (bool more = true; more;) {
      made.push_back(combine(reader, group, chosen, places));
      more = false;
      for (size_t d = places.size(); d > 0 && !more; --d) {
        more = ++places[d - 1] < group.grid[d - 1].values.size();
        if (!more) places[d - 1] = 0;
      }
    }
  }
  return made;
}

void check_count(const Reader& reader, const GroupSource& group, size_t before) {
  double count = 0;
  for (const Case& chosen : group.cases) count += chosen.repeats;
  for (const Dimension& dimension : group.grid) count *= static_cast<double>(dimension.values.size());
  if (count + static_cast<double>(before) > static_cast<double>(kMostRuns)) {
    reader.fail(*group.at, fmt::format("group {} brings the experiment to {:.0f} runs; at most {} are allowed",
                                       group.name, count + static_cast<double>(before), kMostRuns));
  }
}

/// Returns everything that makes a run different from others.
std::string identity(const RunPlan& plan) {
  std::string all = plan.cluster.emulate + "|" + plan.cluster.faults + "|" + plan.cluster.hosts;
  for (const Names* words : {&plan.guest.command, &plan.guest.logs}) {
    for (const std::string& word : *words) all += "|" + word;
  }
  Values sorted = plan.settings;
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [name, value] : sorted) all += "|" + name + "=" + value;
  return all;
}

/// Leaves out runs that were different by a fault of a node alone: on this machine's processes there is none.
void leave_out_faults_of_nodes(std::vector<Variation>& variations) {
  std::set<std::string> seen;
  std::erase_if(variations, [&](const Variation& each) {
    const bool fresh = seen.insert(identity(each.plan)).second;
    return !fresh && each.cluster.plan.faults != each.plan.cluster.faults;
  });
}

/// Refuses equal runs: each would be trained twice, and no name could tell them apart.
void check_different(const Reader& reader, const std::vector<Variation>& variations) {
  std::map<std::string, const Variation*> seen;
  for (const Variation& variation : variations) {
    const RunPlan& plan = variation.plan;
    const auto [found, fresh] = seen.emplace(identity(plan), &variation);
    if (fresh) continue;
    const std::string first = found->second->plan.label;
    reader.fail(*variation.at, fmt::format("{} of group {} is the same run as {}",
                                           plan.label.empty() ? "this case" : "'" + plan.label + "'", plan.group,
                                           first.empty() ? "one before it" : "'" + first + "'"));
  }
}

uint64_t seed_of(const Values& settings) {
  const std::string text = value_of(settings, "seed");
  uint64_t seed = 1;
  std::from_chars(text.data(), text.data() + text.size(), seed);
  return seed;
}

/// Gives repeat r the first seed plus r - 1.
void set_seed(Values& settings, int repeat) {
  const uint64_t seed = seed_of(settings);
  const std::string value = fmt::format("{}", seed + static_cast<uint64_t>(repeat) - 1);
  for (auto& setting : settings) {
    if (setting.first == "seed") {
      setting.second = value;
      return;
    }
  }
  settings.emplace_back("seed", value);
}

void check_seeds(const Reader& reader, const Variation& variation, int repeats) {
  const uint64_t seed = seed_of(variation.plan.settings);
  if (seed <= std::numeric_limits<uint64_t>::max() - static_cast<uint64_t>(repeats - 1)) return;
  reader.fail(*variation.at, fmt::format("run {}: seed {} leaves no seeds for {} repeats; give a smaller one",
                                         variation.plan.key, seed, repeats));
}

}  // namespace

Common read_common(const Reader& reader, const YamlNode& file, bool local) {
  Common common;
  common.local = local;
  if (const YamlNode* base = Reader::find(file, "base")) common.base = read_settings(reader, *base);
  common.cluster = read_cluster(reader, file, {});
  common.repeats = read_repeats(reader, file, 1);
  if (const YamlNode* warm = Reader::find(file, "warm_up")) {
    common.warm_up = reader.whole(*warm, "warm_up", 0, kMostWarmUps);
  }
  return common;
}

Expansion expand(const Reader& reader, const YamlNode& file, const Common& common) {
  Expansion result;
  std::set<std::string> tags;
  size_t runs = 0;
  for (const GroupSource& source : read_groups(reader, file, common)) {
    check_count(reader, source, runs);
    std::vector<Variation> variations = variations_of(reader, source);
    if (source.local) leave_out_faults_of_nodes(variations);
    check_different(reader, variations);
    name_runs(variations);
    Group group{source.name, source.title, {}, source.warm_up};
    for (Variation& variation : variations) {
      const int repeats = std::exchange(variation.plan.repeat, 1);
      for (const auto& tag : variation.plan.tags) tags.insert(tag.first);
      check_seeds(reader, variation, repeats);
      for (int repeat = 1; repeat <= repeats; ++repeat) {
        RunPlan plan = variation.plan;
        plan.repeat = repeat;
        plan.key += fmt::format("-r{}", repeat);
        set_seed(plan.settings, repeat);
        group.runs.push_back(std::move(plan));
      }
      result.variations.push_back(std::move(variation));
    }
    runs += group.runs.size();
    result.groups.push_back(std::move(group));
  }
  result.tags.assign(tags.begin(), tags.end());
  return result;
}

}  // namespace lockstep::lab
