// A model file in YAML, parsed but not yet built. yaml_model.cpp reads it; graph_builder.cpp builds graphs from it,
// once per batch size. Plain values, constant once read; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/yaml_tree.h"
#include "interchange/layer_kinds.h"
#include "lockstep/nn.h"

namespace lockstep::interchange {

struct LayerSpec {
  YamlNode where;                       ///< position for errors; without its content
  YamlNode op;                          ///< text may contain options
  YamlNode main;                        ///< value after the op in the short form, unless a map
  std::vector<YamlNode> keys;           ///< keys of its kind
  std::vector<YamlNode> values;         ///< one per key
  std::string name;                     ///< empty: named after its kind
  std::optional<YamlNode> inputs = {};  ///< unset: the previous layer
  std::optional<YamlNode> when = {};
};

struct LayerName {
  int line = 0;
  bool conditional = false;  ///< true if the layer has a `when`
};

struct FileModel {
  std::string file;
  std::string name;
  std::string description;
  Shape image{1, 28, 28};
  int64_t classes = 10;
  std::vector<nn::ModelOption> options;
  YamlNode defaults;
  std::vector<LayerSpec> layers;
  std::map<std::string, LayerName, std::less<>> names;  ///< layers with a name
  YamlNode loss;
  std::optional<YamlNode> scores, picture, picture_name;
};

/// Returns the variables that texts of the file may use: the options, and the sizes of images and classes.
Variables make_variables(const std::map<std::string, std::string>& options, const Shape& image, int64_t classes);
/// Returns true for names that no option may have.
bool is_size_variable(const std::string& name);

/// Returns true if a part of the file with this `when` applies.
bool applies(const YamlNode& when, const Variables& variables, const std::string& file);
/// Returns the keys of a section: a map, or a list of maps that may have `when`; later ones win. If `short_key` is
/// given, a lone text is its value.
Arguments section(const YamlNode& node, const Variables& variables, const std::string& file, const std::string& subject,
                  const std::string& short_key = "");

/// A layer with its kind and checked keys; `title` is "layer 'fc1' (dense)".
struct LayerCall {
  const LayerKind* kind = nullptr;
  Arguments args;
  std::vector<std::string> inputs;  ///< names
  bool from_previous = false;       ///< true: the first input is the previous layer, and `inputs` are the rest
};
LayerCall make_call(const LayerSpec& layer, const std::string& op, const std::string& title, const Variables& variables,
                    const std::string& file);

/// Builds the training graph of the model for one request with resolved options.
nn::ModelGraph build_graph(const FileModel& model, nn::Graph& graph, const nn::BuildRequest& request);

}  // namespace lockstep::interchange
