#include "lab/overrides.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"
#include "settings/settings.h"

namespace lockstep::lab {
namespace {

using Kind = YamlNode::Kind;

YamlNode scalar(const std::string& text) {
  YamlNode node;
  node.kind = Kind::scalar;
  node.text = text;
  return node;
}

bool names(const YamlNode& key, const settings::SettingDef& def) { return settings::find_setting(key.text) == &def; }

/// Returns the item of a map whose key is this setting, in any spelling; nullptr if there is none.
YamlNode* find(YamlNode* map, const settings::SettingDef& def) {
  if (map == nullptr || !map->is(Kind::map)) return nullptr;
  for (size_t i = 0; i < map->keys.size(); ++i) {
    if (names(map->keys[i], def)) return &map->items[i];
  }
  return nullptr;
}

YamlNode* part(YamlNode& map, std::string_view key) {
  for (size_t i = 0; map.is(Kind::map) && i < map.keys.size(); ++i) {
    if (map.keys[i].text == key) return &map.items[i];
  }
  return nullptr;
}

/// Returns the levels of the file: the file itself, which may hold a grid, and its groups.
std::vector<YamlNode*> levels(YamlNode& file) {
  std::vector<YamlNode*> result{&file};
  YamlNode* groups = part(file, "groups");
  if (groups == nullptr || !groups->is(Kind::list)) return result;
  for (YamlNode& group : groups->items) result.push_back(&group);
  return result;
}

[[noreturn]] void refuse(const Reader& reader, const std::string& name, const YamlNode& at) {
  throw UsageError(fmt::format("--set {}: {} varies it; change the file, or choose some of its runs with --only", name,
                               reader.place(at)));
}

void refuse_varied(const Reader& reader, YamlNode& level, const settings::SettingDef& def) {
  if (const YamlNode* values = find(part(level, "grid"), def)) refuse(reader, settings::yaml_key(def), *values);
  YamlNode* cases = part(level, "cases");
  if (cases == nullptr || !cases->is(Kind::list)) return;
  for (YamlNode& one : cases->items) {
    if (const YamlNode* value = find(&one, def)) refuse(reader, settings::yaml_key(def), *value);
  }
}

/// Returns `base` of the file; creates it if missing.
YamlNode& base_of(YamlNode& file) {
  YamlNode* base = part(file, "base");
  if (base != nullptr && base->is(Kind::map)) return *base;
  file.keys.push_back(scalar("base"));
  file.items.emplace_back();
  file.items.back().kind = Kind::map;
  return file.items.back();
}

void put(YamlNode& map, const std::string& key, const std::string& value) {
  map.keys.push_back(scalar(key));
  map.items.push_back(scalar(value));
}

/// Sets an option of the model, "options.pool", which files also write as `options: {pool: avg}`.
void set_option(const Reader& reader, YamlNode& file, const std::string& name, const std::string& value) {
  const auto refuse_in = [&](YamlNode* map) {
    if (map == nullptr || !map->is(Kind::map)) return;
    const YamlNode* all = part(*map, "options");
    const YamlNode* given = part(*map, name);
    if (given == nullptr && all != nullptr && (!all->is(Kind::map) || all->find(name.substr(8)) != nullptr))
      given = all;
    if (given != nullptr) refuse(reader, name, *given);
  };
  base_of(file);
  for (YamlNode* level : levels(file)) {
    refuse_in(part(*level, "grid"));
    if (YamlNode* cases = part(*level, "cases"); cases != nullptr && cases->is(Kind::list)) {
      for (YamlNode& one : cases->items) refuse_in(&one);
    }
    YamlNode* base = part(*level, "base");
    if (base == nullptr || !base->is(Kind::map)) continue;
    if (YamlNode* there = part(*base, name)) {
      *there = scalar(value);
    } else {
      put(*base, name, value);
    }
  }
}

/// Replaces the nodes or faults of all clusters. A group without nodes (`cluster: off`) stays without them.
void set_cluster(const Reader& reader, YamlNode& file, const std::string& name, const std::string& value) {
  const auto given = [&](YamlNode& level) {
    YamlNode* cluster = part(level, "cluster");
    if (cluster == nullptr || !cluster->is(Kind::map)) return static_cast<YamlNode*>(nullptr);
    if (YamlNode* hosts = part(*cluster, "hosts"); hosts != nullptr && value != "off")
      throw UsageError(fmt::format("--set {}: not with the hosts of {}", name, reader.place(*hosts)));
    return part(*cluster, name);
  };
  if (part(file, "cluster") == nullptr) {
    put(file, "cluster", "");
    file.items.back().kind = Kind::map;
  }
  for (YamlNode* level : levels(file)) {
    if (YamlNode* cases = part(*level, "cases"); cases != nullptr && cases->is(Kind::list)) {
      for (YamlNode& one : cases->items) {
        if (const YamlNode* varied = given(one)) refuse(reader, name, *varied);
      }
    }
    if (YamlNode* there = given(*level)) {
      *there = scalar(value);
    } else if (YamlNode* cluster = part(file, "cluster"); level == &file && cluster->is(Kind::map)) {
      put(*cluster, name, value);
    }
  }
}

void set(const Reader& reader, YamlNode& file, const std::string& name, const std::string& value) {
  if (name == "emulate" || name == "faults") {
    set_cluster(reader, file, name, value);
    return;
  }
  if (name.starts_with("options.") && name.size() > 8) {
    set_option(reader, file, name, value);
    return;
  }
  const settings::SettingDef* def = settings::find_setting(name);
  if (def == nullptr) {
    throw UsageError(fmt::format("--set: '{}' is not a setting{}", base::shown(name), settings::setting_hint(name)));
  }
  settings::Settings scratch;
  settings::assign(scratch, *def, value, "--set " + settings::yaml_key(*def));
  for (YamlNode* level : levels(file)) {
    refuse_varied(reader, *level, *def);
    if (YamlNode* there = find(part(*level, "base"), *def)) *there = scalar(value);
  }
  YamlNode& base = base_of(file);
  if (find(&base, *def) == nullptr) put(base, settings::yaml_key(*def), value);
}

}  // namespace

YamlNode with_settings(const Reader& reader, const YamlNode& file, const Values& settings) {
  YamlNode result = file;
  for (const auto& [name, value] : settings) set(reader, result, name, value);
  return result;
}

}  // namespace lockstep::lab
