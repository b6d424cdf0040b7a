// Reads settings and clusters of an experiment file.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <sstream>

#include "cluster/cluster_file.h"
#include "emulate/faults.h"
#include "lab/expansion.h"
#include "lockstep/error.h"
#include "settings/settings.h"

namespace lockstep::lab {
namespace {

using Kind = YamlNode::Kind;
using settings::SettingDef;

bool is_options(const SettingDef& def) {
  return std::holds_alternative<settings::Options settings::Settings::*>(def.member);
}

/// Returns why a file may not give the setting; empty if it may.
std::string refusal(const SettingDef& def) {
  constexpr std::array<std::string_view, 10> kLabs{"name", "runs-dir", "run-dir",    "quiet",       "resume",
                                                   "task", "report",   "checkpoint", "summary-dir", "cluster"};
  if (std::find(kLabs.begin(), kLabs.end(), def.name) != kLabs.end()) {
    return fmt::format("'{}' is set by the lab; leave it out", def.name);
  }
  if (def.name == "emulate" || def.name == "faults") {
    return fmt::format("'{}' belongs under `cluster:` of the file, a group or a case", def.name);
  }
  return "";
}

std::string option_text(const Reader& reader, const YamlNode& node, std::string_view name) {
  std::string text;
  for (const YamlNode* item : reader.one_or_more(node, name)) text += (text.empty() ? "" : ",") + item->text;
  return text;
}

void add(Layer& layer, GivenSetting given) {
  const auto found =
      std::find_if(layer.begin(), layer.end(), [&](const GivenSetting& g) { return g.name == given.name; });
  if (found == layer.end()) {
    layer.push_back(std::move(given));
  } else {
    *found = std::move(given);
  }
}

/// Adds the `options` of the model, each as its own setting.
void add_options(const Reader& reader, const SettingDef& def, const YamlNode& value, Layer& layer) {
  if (value.is(Kind::map)) {
    for (size_t i = 0; i < value.keys.size(); ++i) {
      const std::string name = "options." + value.keys[i].text;
      add(layer, {name, option_text(reader, value.items[i], name), &value.items[i]});
    }
    return;
  }
  settings::Settings scratch;
  settings::assign(scratch, def, reader.text(value, "options"), reader.place(value) + ": options");
  for (const auto& [key, text] : scratch.options) add(layer, {"options." + key, text, &value});
}

void add_setting(const Reader& reader, const YamlNode& key, const YamlNode& value, Layer& layer) {
  if (key.text.starts_with("options.") && key.text.size() > 8) {
    add(layer, {key.text, option_text(reader, value, key.text), &value});
    return;
  }
  const SettingDef* def = settings::find_setting(key.text);
  if (def == nullptr) {
    const std::string shown = base::shown(key.text);
    reader.fail(key, fmt::format("unknown setting '{}'{}", shown, settings::setting_hint(shown)));
  }
  if (const std::string reason = refusal(*def); !reason.empty()) reader.fail(key, reason);
  if (is_options(*def)) {
    add_options(reader, *def, value, layer);
    return;
  }
  const bool unset =
      value.is(Kind::null) && std::holds_alternative<std::optional<double> settings::Settings::*>(def->member);
  if (!unset && !value.is(Kind::scalar)) {
    reader.fail(value,
                fmt::format("{}: is {}; it takes {}", def->name, base::describe(value), settings::allowed_text(*def)));
  }
  std::string text = canonical(reader, value, def->name, unset ? "" : value.text);
  if (def->name == "model" || def->name == "dataset") text = found_beside(reader.file(), text);
  add(layer, {std::string(def->name), text, &value});
}

/// {cores: 0.5, node2: {cores: 0.25}} -> "cores=0.5,node2.cores=0.25".
std::string emulate_text(const Reader& reader, const YamlNode& node) {
  if (node.is(Kind::scalar)) return reader.text(node, "emulate");
  reader.check_map(node, "emulate");
  std::string result;
  const auto add_value = [&](const std::string& key, const YamlNode& value) {
    result += fmt::format("{}{}={}", result.empty() ? "" : ",", key, reader.text(value, key));
  };
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const YamlNode& value = node.items[i];
    if (!value.is(Kind::map)) {
      add_value(node.keys[i].text, value);
      continue;
    }
    for (size_t k = 0; k < value.keys.size(); ++k) {
      add_value(node.keys[i].text + "." + value.keys[k].text, value.items[k]);
    }
  }
  return result.empty() ? "on" : result;
}

std::string faults_text(const Reader& reader, const YamlNode& node) {
  std::string result;
  for (const YamlNode* item : reader.one_or_more(node, "faults")) result += (result.empty() ? "" : "; ") + item->text;
  return result;
}

/// Lays one key of a cluster over the value of the level above; `off` removes that value.
template <class Text>
void lay_part(const YamlNode& map, const char* key, const YamlNode*& place, std::string& value, const Text& text) {
  const YamlNode* node = map.find(key);
  if (node == nullptr || node->is(Kind::null)) return;
  place = node;
  value = Reader::find(map, key) == nullptr ? "" : text(*node);
}

/// Text that is not a fault is refused later.
bool needs_nodes(const std::string& fault) {
  try {
    const std::vector<emulate::Fault> faults = emulate::parse_faults(fault);
    return faults.size() == 1 && faults.front().target.starts_with("node");
  } catch (const UsageError&) {
    return false;
  }
}

}  // namespace

std::string found_beside(const std::string& file, const std::string& text) {
  namespace fs = std::filesystem;
  const fs::path path(text);
  if (!path.has_extension() || path.is_absolute()) return text;
  std::error_code ignored;
  const fs::path beside = fs::path(file).parent_path() / path;
  return !fs::exists(path, ignored) && fs::exists(beside, ignored) ? beside.string() : text;
}

std::string canonical(const Reader& reader, const YamlNode& at, std::string_view name, const std::string& text) {
  const SettingDef* def = settings::find_setting(name);
  if (def == nullptr) return text;
  settings::Settings scratch;
  settings::assign(scratch, *def, text, fmt::format("{}: {}", reader.place(at), def->name));
  return settings::value_text(scratch, *def);
}

Layer read_settings(const Reader& reader, const YamlNode& map, const Names& besides) {
  reader.check_map(map, "settings");
  Layer layer;
  for (size_t i = 0; i < map.keys.size(); ++i) {
    if (std::find(besides.begin(), besides.end(), map.keys[i].text) != besides.end()) continue;
    add_setting(reader, map.keys[i], map.items[i], layer);
  }
  return layer;
}

GivenCluster read_cluster(const Reader& reader, const YamlNode& map, GivenCluster above) {
  const YamlNode* node = map.find("cluster");
  if (node == nullptr || node->is(Kind::null)) return above;
  if (node->is(Kind::scalar) && node->text == "off") return {};
  reader.check_map(*node, "cluster", {"emulate", "faults", "hosts", "ssh", "program"});
  const YamlNode* hosts = Reader::find(*node, "hosts");
  const YamlNode* emulate = Reader::find(*node, "emulate");
  if (hosts != nullptr && emulate != nullptr) {
    reader.fail(*hosts, "hosts and emulate do not go together: nodes are real or emulated");
  }
  if (hosts != nullptr) {  // neither nodes nor faults of this machine
    above.emulate = above.faults = nullptr;
    above.plan.emulate = above.plan.faults = "";
  }
  if (emulate != nullptr) above.plan.hosts.clear();
  lay_part(*node, "hosts", above.hosts, above.plan.hosts,
           [&](const YamlNode& given) { return found_beside(reader.file(), reader.text(given, "hosts")); });
  lay_part(*node, "emulate", above.emulate, above.plan.emulate,
           [&](const YamlNode& given) { return emulate_text(reader, given); });
  lay_part(*node, "faults", above.faults, above.plan.faults,
           [&](const YamlNode& given) { return faults_text(reader, given); });
  if (above.plan.hosts.empty()) above.plan.ssh = above.plan.program = "";
  const auto lay_of_hosts = [&](const char* key, std::string& value) {
    const YamlNode* given = nullptr;
    lay_part(*node, key, given, value, [&](const YamlNode& text) { return reader.text(text, key); });
    if (given != nullptr && above.plan.hosts.empty()) {
      reader.fail(*given, fmt::format("{} applies only to hosts; add hosts", key));
    }
  };
  lay_of_hosts("ssh", above.plan.ssh);
  lay_of_hosts("program", above.plan.program);
  return above;
}

std::string layout_of(const Reader& reader, const GivenCluster& given) {
  std::string layout;
  try {
    for (const cluster::Node& node : cluster::load_cluster_file(given.plan.hosts).nodes) {
      if (!layout.empty()) layout += '-';
      for (const cluster::Task& task : node.tasks) {
        layout += static_cast<char>(std::toupper(static_cast<unsigned char>(cluster::name(task.role).front())));
      }
    }
  } catch (const Error& error) {
    reader.fail(*given.hosts, error.what());
  }
  return layout;
}

ClusterPlan local_of(const ClusterPlan& cluster) {
  ClusterPlan local;
  std::istringstream pieces(cluster.faults);
  for (std::string piece; std::getline(pieces, piece, ';');) {
    piece.erase(0, piece.find_first_not_of(' '));
    if (!needs_nodes(piece)) local.faults += (local.faults.empty() ? "" : "; ") + piece;
  }
  return local;
}

}  // namespace lockstep::lab
