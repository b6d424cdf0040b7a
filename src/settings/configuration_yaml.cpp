#include <fmt/format.h>

#include <filesystem>

#include "base/file.h"
#include "base/yaml_tree.h"
#include "lockstep/error.h"
#include "settings/configuration.h"

namespace lockstep::settings {
namespace {

using base::YamlNode;
using NodeKind = YamlNode::Kind;

constexpr uint64_t kLargestFile = uint64_t{1} << 20;

/// Returns a value of the model's options: a scalar, or a list with commas between its items.
std::string option_value(const YamlNode& node, const std::string& where) {
  if (node.is(NodeKind::scalar)) return node.text;
  std::string text;
  if (!node.is(NodeKind::list)) throw UsageError(where + ": must be one value or a list");
  for (const YamlNode& item : node.items) {
    if (!item.is(NodeKind::scalar)) throw UsageError(where + ": must be one value or a list of plain values");
    text.append(text.empty() ? "" : ",").append(item.text);
  }
  return text;
}

std::string options_from(const YamlNode& map, const std::string& where) {
  std::string text;
  for (size_t i = 0; i < map.items.size(); ++i) {
    const std::string& key = map.keys[i].text;
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, option_value(map.items[i], where + "." + key));
  }
  return text;
}

std::string value_of(const SettingDef& def, const YamlNode& node, const std::string& where) {
  if (node.is(NodeKind::map) && std::holds_alternative<Options Settings::*>(def.member))
    return options_from(node, where);
  if (node.is(NodeKind::scalar)) return node.text;
  if (node.is(NodeKind::null) && std::holds_alternative<std::optional<double> Settings::*>(def.member)) return "";
  if (node.is(NodeKind::null)) throw UsageError(fmt::format("{}: has no value; it takes {}", where, allowed_text(def)));
  throw UsageError(
      fmt::format("{}: is a {}; it takes {}", where, node.is(NodeKind::map) ? "map" : "list", allowed_text(def)));
}

const SettingDef& setting_of(const YamlNode& key, const std::string& file) {
  const SettingDef* def = find_setting(key.text);
  const std::string name = base::shown(key.text);
  if (def == nullptr) base::reject(file, key, fmt::format("unknown key '{}'{}", name, setting_hint(name)));
  return *def;
}

}  // namespace

Configuration::Layer Configuration::read_yaml(const std::string& text, const std::string& file, bool of_run) {
  const YamlNode root = base::parse_yaml(text, file);
  Layer layer;
  if (root.is(NodeKind::null)) return layer;
  if (!root.is(NodeKind::map)) base::reject(file, root, "must hold settings, one 'key: value' per line");
  for (size_t i = 0; i < root.items.size(); ++i) {
    const YamlNode& key = root.keys[i];
    const SettingDef& def = setting_of(key, file);
    if (def.keep == Keep::call_only) {
      if (of_run) continue;
      base::reject(file, key, fmt::format("'{}' is for the command line only", def.name));
    }
    const std::string where = fmt::format("{}: {}", base::place(file, key), def.name);
    const std::string value = value_of(def, root.items[i], where);
    Settings scratch;
    assign(scratch, def, value, where);
    if (!layer.emplace(std::string(def.name), Given{value, where}).second) {
      throw UsageError(where + ": is given twice");
    }
  }
  return layer;
}

void Configuration::parse_yaml(const std::string& text, const std::string& file) { file_ = read_yaml(text, file); }

void Configuration::load_yaml(const std::string& path) {
  const std::vector<uint8_t> bytes = base::read_file(path, kLargestFile);
  parse_yaml(std::string(bytes.begin(), bytes.end()), path);
}

void Configuration::resume_from(const std::string& path) {
  const std::vector<uint8_t> bytes = base::read_file(path, kLargestFile);
  run_ = read_yaml(std::string(bytes.begin(), bytes.end()), path, true);
  models_.use_copies_of(std::filesystem::path(path).parent_path().string());
}

}  // namespace lockstep::settings
