#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "lockstep/error.h"
#include "train/configuration.h"

namespace lockstep::train {
namespace {

constexpr uint64_t kLargestFile = uint64_t{1} << 20;

std::string place(const std::string& file, const YAML::Mark& mark) {
  if (mark.is_null()) return file;
  return fmt::format("{}:{}:{}", file, mark.line + 1, mark.column + 1);
}

/// A value of the model's options: a scalar, or a list of them with commas between.
std::string option_value(const YAML::Node& node, const std::string& where) {
  if (node.IsScalar()) return node.Scalar();
  std::string text;
  if (!node.IsSequence()) throw UsageError(where + ": must be one value or a list");
  for (const auto& item : node) {
    if (!item.IsScalar()) throw UsageError(where + ": must be one value or a list of plain values");
    text.append(text.empty() ? "" : ",").append(item.Scalar());
  }
  return text;
}

std::string options_from(const YAML::Node& node, const std::string& where) {
  std::string text;
  Options seen;
  for (const auto& entry : node) {
    if (!entry.first.IsScalar()) throw UsageError(where + ": option names must be plain text");
    const std::string& key = entry.first.Scalar();
    if (!seen.emplace(key, "").second) throw UsageError(fmt::format("{}: option '{}' is there twice", where, key));
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key, option_value(entry.second, where + "." + key));
  }
  return text;
}

std::string value_of(const SettingDef& def, const YAML::Node& node, const std::string& where) {
  if (node.IsMap() && std::holds_alternative<Options Settings::*>(def.member)) return options_from(node, where);
  if (node.IsScalar()) return node.Scalar();
  if (node.IsNull() && std::holds_alternative<std::optional<double> Settings::*>(def.member)) return "";
  if (node.IsNull()) throw UsageError(fmt::format("{}: has no value; it takes {}", where, allowed_text(def)));
  throw UsageError(fmt::format("{}: is a {}; it takes {}", where, node.IsMap() ? "map" : "list", allowed_text(def)));
}

/// Hears nothing: for finding out how much of a text is one document.
class Deaf final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {}
  void OnMapEnd() override {}
};

/// Not YAML::LoadAll, which never returns for a text like "," (yaml-cpp 0.7).
bool has_second_document(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  Deaf handler;
  return parser.HandleNextDocument(handler) && parser.HandleNextDocument(handler);
}

YAML::Node parse(const std::string& text, const std::string& file) {
  try {
    if (has_second_document(text)) throw UsageError(file + ": goes on after the end of its settings");
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    throw UsageError(fmt::format("{}: not valid YAML: {}", place(file, error.mark), error.msg));
  }
}

const SettingDef& setting_of(const YAML::Node& key, const std::string& file) {
  if (!key.IsScalar()) throw UsageError(place(file, key.Mark()) + ": a key must be plain text");
  const SettingDef* def = find_setting(key.Scalar());
  const std::string shown = key.Scalar().substr(0, 60);
  if (def == nullptr) {
    throw UsageError(fmt::format("{}: unknown key '{}'{}", place(file, key.Mark()), shown, setting_hint(shown)));
  }
  return *def;
}

}  // namespace

Configuration::Layer Configuration::read_yaml(const std::string& text, const std::string& file, bool of_run) {
  const YAML::Node root = parse(text, file);
  Layer layer;
  if (!root.IsDefined() || root.IsNull()) return layer;
  if (!root.IsMap()) throw UsageError(place(file, root.Mark()) + ": must hold settings, one 'key: value' per line");
  for (const auto& entry : root) {
    const SettingDef& def = setting_of(entry.first, file);
    if (def.keep == Keep::call_only) {
      if (of_run) continue;
      throw UsageError(fmt::format("{}: '{}' is for the command line only", place(file, entry.first.Mark()), def.name));
    }
    const std::string where = fmt::format("{}: {}", place(file, entry.first.Mark()), def.name);
    const std::string value = value_of(def, entry.second, where);
    Settings scratch;
    assign(scratch, def, value, where);
    if (!layer.emplace(std::string(def.name), Given{value, where}).second) {
      throw UsageError(where + ": is there twice");
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

}  // namespace lockstep::train
