#include "lab/overrides.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/error.h"
#include "train/settings.h"

namespace lockstep::lab {
namespace {

using Kind = YamlNode::Kind;

YamlNode scalar(const std::string& text) {
  YamlNode node;
  node.kind = Kind::scalar;
  node.text = text;
  return node;
}

bool names(const YamlNode& key, const train::SettingDef& def) { return train::find_setting(key.text) == &def; }

/// The item of a map whose key is this setting, however it is spelt; nullptr without one.
YamlNode* find(YamlNode* map, const train::SettingDef& def) {
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

/// The file itself, which may hold a grid of its own, and its groups.
std::vector<YamlNode*> levels(YamlNode& file) {
  std::vector<YamlNode*> result{&file};
  YamlNode* groups = part(file, "groups");
  if (groups == nullptr || !groups->is(Kind::list)) return result;
  for (YamlNode& group : groups->items) result.push_back(&group);
  return result;
}

void refuse_varied(const Reader& reader, YamlNode& level, const train::SettingDef& def) {
  const auto refuse = [&](const YamlNode& at) {
    throw UsageError(fmt::format("--set {}: {} varies it; change the file, or take some of its runs with --only",
                                 train::yaml_key(def), reader.place(at)));
  };
  if (const YamlNode* values = find(part(level, "grid"), def)) refuse(*values);
  YamlNode* cases = part(level, "cases");
  if (cases == nullptr || !cases->is(Kind::list)) return;
  for (YamlNode& one : cases->items) {
    if (const YamlNode* value = find(&one, def)) refuse(*value);
  }
}

void set(const Reader& reader, YamlNode& file, const std::string& name, const std::string& value) {
  const train::SettingDef* def = train::find_setting(name);
  if (def == nullptr) {
    throw UsageError(fmt::format("--set: '{}' is not a setting{}", base::shown(name), train::setting_hint(name)));
  }
  train::Settings scratch;
  train::assign(scratch, *def, value, "--set " + train::yaml_key(*def));
  for (YamlNode* level : levels(file)) {
    refuse_varied(reader, *level, *def);
    if (YamlNode* there = find(part(*level, "base"), *def)) *there = scalar(value);
  }
  YamlNode* base = part(file, "base");
  if (find(base, *def) != nullptr) return;
  if (base == nullptr || !base->is(Kind::map)) {
    file.keys.push_back(scalar("base"));
    file.items.emplace_back();
    base = &file.items.back();
    base->kind = Kind::map;
  }
  base->keys.push_back(scalar(train::yaml_key(*def)));
  base->items.push_back(scalar(value));
}

void remove_emulation(YamlNode& level) {
  YamlNode* cluster = part(level, "cluster");
  if (cluster == nullptr || !cluster->is(Kind::map)) return;
  for (size_t i = 0; i < cluster->keys.size(); ++i) {
    if (cluster->keys[i].text != "emulate") continue;
    cluster->keys.erase(cluster->keys.begin() + static_cast<std::ptrdiff_t>(i));
    cluster->items.erase(cluster->items.begin() + static_cast<std::ptrdiff_t>(i));
    return;
  }
}

}  // namespace

YamlNode with_overrides(const Reader& reader, const YamlNode& file, const Overrides& overrides) {
  YamlNode result = file;
  for (const auto& [name, value] : overrides.settings) set(reader, result, name, value);
  if (overrides.local) {
    for (YamlNode* level : levels(result)) remove_emulation(*level);
  }
  return result;
}

}  // namespace lockstep::lab
