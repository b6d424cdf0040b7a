#include "interchange/yaml_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <memory>

#include "base/suggest.h"
#include "interchange/file_model.h"
#include "lockstep/error.h"

namespace lockstep::interchange {
namespace {

constexpr size_t kMostLayers = 10000;
constexpr size_t kLongestName = 64;
constexpr int64_t kLargestSide = 65536;
const std::vector<std::string> kSections{"name",   "description", "image",  "classes", "defaults",    "options",
                                         "layers", "loss",        "scores", "picture", "picture_name"};

bool is_name(const std::string& text) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.'; };
  return !text.empty() && text.size() <= kLongestName && std::isalnum(static_cast<unsigned char>(text[0])) != 0 &&
         std::all_of(text.begin(), text.end(), fits);
}

/// Returns true for names of letters, digits and a few signs, possibly in scopes: "localisation/fc1".
bool is_layer_name(std::string text) {
  if (text.size() > kLongestName || text.ends_with('/')) return false;
  for (size_t slash = text.find('/'); slash != std::string::npos; slash = text.find('/')) {
    if (!is_name(text.substr(0, slash))) return false;
    text.erase(0, slash + 1);
  }
  return is_name(text);
}

std::string checked_name(const YamlNode& node, const std::string& file, const std::string& what) {
  if (node.is(YamlNode::Kind::scalar) && is_name(node.text)) return node.text;
  reject(file, node,
         fmt::format("{}: {} is not a name of letters, digits, '_', '-' and '.' (at most {})", what, describe(node),
                     kLongestName));
}

std::string plain_text(const YamlNode& node, const std::string& file, const std::string& what) {
  if (node.is(YamlNode::Kind::scalar)) return node.text;
  reject(file, node, what + ": " + describe(node) + " is not a text");
}

/// Parses a layer of the list: `relu`, `dense: 120`, `conv: {...}` or `op: conv` with keys.
class LayerReader {
 public:
  LayerReader(FileModel& model, const YamlNode& item) : model_(model), item_(item) {}

  LayerSpec read() {
    spec_.where = YamlNode{YamlNode::Kind::null, item_.line, item_.column};
    if (item_.is(YamlNode::Kind::scalar)) {
      spec_.op = item_;
      return spec_;
    }
    if (!item_.is(YamlNode::Kind::map) || item_.keys.empty()) {
      reject(model_.file, item_, "a layer is an op's name or keys with values, not " + describe(item_));
    }
    const size_t op = find_op();
    if (item_.keys[op].text == "op") {
      spec_.op = item_.items[op];
      if (!spec_.op.is(YamlNode::Kind::scalar)) reject(model_.file, spec_.op, "op: must be the name of a layer kind");
    } else {
      spec_.op = item_.keys[op];
      take_value(item_.items[op]);
    }
    for (size_t i = 0; i < item_.keys.size(); ++i) {
      if (i != op) take(item_.keys[i], item_.items[i]);
    }
    return spec_;
  }

 private:
  static bool is_common(const std::string& key) { return key == "name" || key == "inputs" || key == "when"; }

  size_t find_op() const {
    std::vector<size_t> candidates;
    for (size_t i = 0; i < item_.keys.size(); ++i) {
      if (item_.keys[i].text == "op") return i;
      if (!is_common(item_.keys[i].text)) candidates.push_back(i);
    }
    if (candidates.empty()) reject(model_.file, item_, "a layer needs an op");
    for (const size_t i : candidates) {
      const std::string& text = item_.keys[i].text;
      if (candidates.size() == 1 || find_layer_kind(text) != nullptr || text.find('$') != std::string::npos) return i;
    }
    const std::string& first = item_.keys[candidates[0]].text;
    reject(model_.file, item_.keys[candidates[0]],
           fmt::format("unknown layer '{}'{}", shown(first), base::hint(shown(first), layer_kind_names())));
  }

  void take_value(const YamlNode& value) {
    if (!value.is(YamlNode::Kind::map)) {
      spec_.main = value;
      return;
    }
    for (size_t i = 0; i < value.keys.size(); ++i) take(value.keys[i], value.items[i]);
  }

  void take(const YamlNode& key, const YamlNode& value) {
    const bool again = (key.text == "name" && !spec_.name.empty()) || (key.text == "inputs" && spec_.inputs) ||
                       (key.text == "when" && spec_.when) ||
                       std::any_of(spec_.keys.begin(), spec_.keys.end(),
                                   [&](const YamlNode& other) { return other.text == key.text; });
    if (again) reject(model_.file, key, "key '" + shown(key.text) + "' is repeated");
    if (key.text == "name") {
      take_name(value);
    } else if (key.text == "inputs") {
      spec_.inputs = value;
    } else if (key.text == "when") {
      spec_.when = value;
    } else {
      spec_.keys.push_back(key);
      spec_.values.push_back(value);
    }
  }

  [[nodiscard]] bool has_when() const {
    const auto within = [](const YamlNode& item) { return item.find("when") != nullptr; };
    return within(item_) || std::any_of(item_.items.begin(), item_.items.end(), within);
  }

  void take_name(const YamlNode& value) {
    if (!value.is(YamlNode::Kind::scalar) || !is_layer_name(value.text)) {
      reject(model_.file, value,
             fmt::format("name: {} is not a name of letters, digits, '_', '-', '.' and '/' between (at most {})",
                         describe(value), kLongestName));
    }
    spec_.name = value.text;
    if (spec_.name == "images" || spec_.name == "labels" || spec_.name == "loss") {
      reject(model_.file, value, "name: '" + spec_.name + "' is reserved: every model has this value");
    }
    const auto [other, fresh] = model_.names.try_emplace(spec_.name, LayerName{item_.line, has_when()});
    // Conditional layers may share a name. The build checks that at most one of them applies.
    if (!fresh && !(has_when() && other->second.conditional)) {
      reject(model_.file, value,
             fmt::format("name: '{}' is already the layer on line {}", spec_.name, other->second.line));
    }
  }

  FileModel& model_;
  const YamlNode& item_;
  LayerSpec spec_;
};

void read_layers(FileModel& model, const YamlNode& list) {
  if (list.is(YamlNode::Kind::list) && list.items.empty()) reject(model.file, list, "layers: is empty");
  if (!list.is(YamlNode::Kind::list)) {
    reject(model.file, list, "layers: must be a list of layers, not " + describe(list));
  }
  if (list.items.size() > kMostLayers) {
    reject(model.file, list, fmt::format("layers: has {}; at most {}", list.items.size(), kMostLayers));
  }
  for (const YamlNode& item : list.items) model.layers.push_back(LayerReader(model, item).read());
}

nn::ModelOption read_option(const FileModel& model, const YamlNode& key, const YamlNode& value) {
  nn::ModelOption option;
  option.name = checked_name(key, model.file, "option");
  if (is_size_variable(option.name))
    reject(model.file, key, "option: '" + option.name + "' is reserved: every model has this value");
  if (value.is(YamlNode::Kind::scalar)) {
    option.default_value = value.text;
    return option;
  }
  const Variables none;
  Arguments args = section(value, none, model.file, "option '" + option.name + "'");
  args.check_keys({"default", "allowed", "description"});
  if (!args.has("default")) args.reject("default", "is missing");
  option.default_value = plain_text(*args.find("default"), model.file, "default");
  if (const YamlNode* text = args.find("description"))
    option.description = plain_text(*text, model.file, "description");
  if (const YamlNode* allowed = args.find("allowed")) {
    if (!allowed->is(YamlNode::Kind::list)) args.reject("allowed", describe(*allowed) + " is not a list");
    for (const YamlNode& item : allowed->items) option.allowed.push_back(plain_text(item, model.file, "allowed"));
    if (std::find(option.allowed.begin(), option.allowed.end(), option.default_value) == option.allowed.end()) {
      args.reject("default", "'" + shown(option.default_value) + "' is not one of the allowed values");
    }
  }
  return option;
}

void read_options(FileModel& model, const YamlNode& map) {
  if (!map.is(YamlNode::Kind::map))
    reject(model.file, map, "options: " + describe(map) + " is not {name: default, ...}");
  for (size_t i = 0; i < map.keys.size(); ++i) model.options.push_back(read_option(model, map.keys[i], map.items[i]));
}

void read_sizes(FileModel& model, const YamlNode& root) {
  const Variables none;
  Arguments args(model.file, none, "model", root);
  if (const YamlNode* image = root.find("image")) {
    args.add("image", *image);
    const std::vector<int64_t> dims = args.integers("image", 1, kLargestSide);
    if (dims.size() != 3) args.reject("image", "must be [channels, height, width]");
    model.image = Shape(dims);
  }
  if (const YamlNode* classes = root.find("classes")) {
    args.add("classes", *classes);
    model.classes = args.integer("classes", {}, 1, kLargestSide);
  }
}

std::string name_from(const std::string& file) {
  std::string name = std::filesystem::path(file).stem().string().substr(0, kLongestName);
  for (char& c : name) {
    if (!is_name("x" + std::string(1, c))) c = '-';
  }
  return is_name(name) ? name : "model";
}

FileModel read_model(const std::string& text, const std::string& file, const std::string& named_after) {
  const YamlNode root = base::parse_yaml(text, file);
  if (root.is(YamlNode::Kind::null)) throw UsageError(file + ": is empty; a model file has at least `layers:`");
  if (!root.is(YamlNode::Kind::map))
    reject(file, root, "a model file has keys such as `layers:`, not " + describe(root));
  for (const YamlNode& key : root.keys) {
    if (std::find(kSections.begin(), kSections.end(), key.text) != kSections.end()) continue;
    reject(file, key, "unknown key '" + shown(key.text) + "'" + base::hint(shown(key.text), kSections));
  }
  FileModel model;
  model.file = file;
  const YamlNode* name = root.find("name");
  model.name = name == nullptr ? name_from(named_after) : checked_name(*name, file, "name");
  if (const YamlNode* node = root.find("description")) model.description = plain_text(*node, file, "description");
  read_sizes(model, root);
  if (const YamlNode* node = root.find("options")) read_options(model, *node);
  if (const YamlNode* node = root.find("defaults")) model.defaults = *node;
  if (const YamlNode* node = root.find("loss")) model.loss = *node;
  if (const YamlNode* node = root.find("scores")) model.scores = *node;
  if (const YamlNode* node = root.find("picture")) model.picture = *node;
  if (const YamlNode* node = root.find("picture_name")) model.picture_name = *node;
  const YamlNode* layers = root.find("layers");
  if (layers == nullptr) reject(file, root, "has no `layers:`");
  read_layers(model, *layers);
  return model;
}

/// Applies the section `defaults` for these options.
void apply_defaults(const FileModel& model, const std::map<std::string, std::string>& options,
                    nn::TrainingDefaults& defaults) {
  const Variables variables = make_variables(options, model.image, model.classes);
  const Arguments args = section(model.defaults, variables, model.file, "defaults");
  args.check_keys({"optimizer", "lr", "batch", "epochs", "dataset", "pixels"});
  constexpr int64_t kMost = 1'000'000;
  defaults.optimizer = args.text("optimizer", defaults.optimizer);
  defaults.learning_rate = static_cast<float>(args.number("lr", defaults.learning_rate, 0, 1e6));
  defaults.batch = args.integer("batch", defaults.batch, 1, kMost);
  defaults.epochs = args.integer("epochs", defaults.epochs, 1, kMost);
  defaults.dataset = args.text("dataset", defaults.dataset);
  defaults.pixels = args.text("pixels", defaults.pixels);
}

}  // namespace

nn::ModelDef parse_yaml_model(const std::string& text, const std::string& file, const std::string& named_after) {
  const auto model =
      std::make_shared<const FileModel>(read_model(text, file, named_after.empty() ? file : named_after));
  nn::ModelDef def;
  def.name = model->name;
  def.description = model->description.empty() ? "a model from " + file : model->description;
  def.image = model->image;
  def.classes = model->classes;
  def.options = model->options;
  def.file = file;
  def.build = [model](nn::Graph& graph, const nn::BuildRequest& request) {
    return build_graph(*model, graph, request);
  };
  def.adjust = [model](const std::map<std::string, std::string>& options, nn::TrainingDefaults& defaults) {
    apply_defaults(*model, options, defaults);
  };
  const auto options = nn::resolve_options(def, {});
  apply_defaults(*model, options, def.defaults);
  try {
    nn::Graph trial;
    nn::build(trial, def, {def.defaults.batch, true, def.image, def.classes, options});
  } catch (const ShapeError& error) {
    throw UsageError(error.what());
  }
  return def;
}

}  // namespace lockstep::interchange
