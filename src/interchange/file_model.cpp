#include "interchange/file_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/suggest.h"
#include "lockstep/error.h"

namespace lockstep::interchange {
namespace {

constexpr std::array<std::string_view, 6> kSizes{"classes", "channels", "height", "width", "pixels", "image"};

bool matches(const YamlNode& wanted, const std::string& value, const Variables& variables, const std::string& file) {
  if (wanted.is(YamlNode::Kind::scalar)) return expand(wanted, variables, file) == value;
  if (!wanted.is(YamlNode::Kind::list))
    reject(file, wanted, "when: " + describe(wanted) + " is not a value of an option");
  return std::any_of(wanted.items.begin(), wanted.items.end(), [&](const YamlNode& item) {
    if (!item.is(YamlNode::Kind::scalar))
      reject(file, item, "when: " + describe(item) + " is not a value of an option");
    return expand(item, variables, file) == value;
  });
}

void add_all(Arguments& args, const YamlNode& map) {
  for (size_t i = 0; i < map.keys.size(); ++i) {
    if (map.keys[i].text != "when") args.add(map.keys[i], map.items[i]);
  }
}

void add_main(LayerCall& call, const LayerSpec& layer, const std::string& file) {
  const LayerKind& kind = *call.kind;
  const std::string key(kind.main);
  if (key.empty()) {
    reject(file, layer.main,
           fmt::format("{}: {} cannot be its value; {}", call.args.subject(), describe(layer.main),
                       kind.keys.empty() ? "it takes none" : "write its keys as {key: value, ...}"));
  }
  if (call.args.has(key)) call.args.reject(key, "is given twice: after the op and as a key");
  call.args.add(key, layer.main);
  call.from_previous = key == "inputs" && layer.main.is(YamlNode::Kind::scalar) && !kind.with_labels;
}

void check_input_count(const LayerCall& call, const LayerSpec& layer, const std::string& file) {
  const LayerKind& kind = *call.kind;
  const auto count = static_cast<int>(call.inputs.size()) + (call.from_previous ? 1 : 0);
  if (count >= kind.least_inputs && (kind.most_inputs < 0 || count <= kind.most_inputs)) return;
  std::string wants = fmt::format("{}{}", kind.most_inputs < 0 ? "at least " : "", kind.least_inputs);
  if (kind.least_inputs == 0) wants = "none";
  const YamlNode& where = layer.inputs ? *layer.inputs : layer.where;
  reject(file, where, fmt::format("{}: inputs: has {}, needs {}", call.args.subject(), count, wants));
}

}  // namespace

Variables make_variables(const std::map<std::string, std::string>& options, const Shape& image, int64_t classes) {
  Variables variables = options;
  variables["classes"] = std::to_string(classes);
  variables["channels"] = std::to_string(image[0]);
  variables["height"] = std::to_string(image[1]);
  variables["width"] = std::to_string(image[2]);
  variables["pixels"] = std::to_string(image.elements());
  variables["image"] = fmt::format("{},{},{}", image[0], image[1], image[2]);
  return variables;
}

bool is_size_variable(const std::string& name) { return std::find(kSizes.begin(), kSizes.end(), name) != kSizes.end(); }

bool applies(const YamlNode& when, const Variables& variables, const std::string& file) {
  if (when.is(YamlNode::Kind::scalar)) {
    const std::string value = expand(when, variables, file);
    if (value == "true" || value == "false") return value == "true";
    reject(file, when, "when: '" + shown(value) + "' is not true or false; options are tested by {option: value}");
  }
  if (!when.is(YamlNode::Kind::map)) reject(file, when, "when: " + describe(when) + " is not {option: value}");
  bool all = true;
  for (size_t i = 0; i < when.keys.size(); ++i) {
    const YamlNode& key = when.keys[i];
    const auto found = variables.find(key.text);
    if (found == variables.end()) {
      std::vector<std::string> known;
      for (const auto& [name, value] : variables) known.push_back(name);
      reject(file, key, "when: the model has no option '" + shown(key.text) + "'" + base::hint(shown(key.text), known));
    }
    all = matches(when.items[i], found->second, variables, file) && all;
  }
  return all;
}

Arguments section(const YamlNode& node, const Variables& variables, const std::string& file, const std::string& subject,
                  const std::string& short_key) {
  Arguments args(file, variables, subject, node);
  if (node.is(YamlNode::Kind::null)) return args;
  if (node.is(YamlNode::Kind::scalar) && !short_key.empty()) {
    args.add(short_key, node);
    return args;
  }
  if (node.is(YamlNode::Kind::map)) {
    if (const YamlNode* when = node.find("when"); when == nullptr || applies(*when, variables, file)) {
      add_all(args, node);
    }
    return args;
  }
  if (!node.is(YamlNode::Kind::list)) reject(file, node, subject + ": " + describe(node) + " is not keys with values");
  for (const YamlNode& part : node.items) {
    if (!part.is(YamlNode::Kind::map)) reject(file, part, subject + ": " + describe(part) + " is not keys with values");
    const YamlNode* when = part.find("when");
    if (when == nullptr || applies(*when, variables, file)) add_all(args, part);
  }
  return args;
}

LayerCall make_call(const LayerSpec& layer, const std::string& op, const std::string& title, const Variables& variables,
                    const std::string& file) {
  const LayerKind* kind = find_layer_kind(op);
  if (kind == nullptr) {
    reject(file, layer.op, fmt::format("unknown layer '{}'{}", shown(op), base::hint(shown(op), layer_kind_names())));
  }
  LayerCall call{kind, Arguments(file, variables, title, layer.where), {}, false};
  for (size_t i = 0; i < layer.keys.size(); ++i) call.args.add(layer.keys[i], layer.values[i]);
  if (layer.inputs) call.args.add("inputs", *layer.inputs);
  if (!layer.main.is(YamlNode::Kind::null)) add_main(call, layer, file);
  std::vector<std::string> allowed;
  for (const LayerKey& key : kind->keys) allowed.emplace_back(key.name);
  for (const char* key : {"name", "inputs", "when"}) allowed.emplace_back(key);
  call.args.check_keys(allowed);
  call.inputs = call.args.names("inputs");
  const bool given = call.args.has("inputs");
  if (!given && kind->least_inputs > 0) call.from_previous = true;
  if (kind->with_labels && call.inputs.size() + (call.from_previous ? 1 : 0) == 1) call.inputs.emplace_back("labels");
  check_input_count(call, layer, file);
  return call;
}

}  // namespace lockstep::interchange
