// A model file in YAML, taken apart but not yet built: what yaml_model.cpp reads and graph_builder.cpp builds graphs
// from, once per batch size. Plain values, constant once read; any thread.
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
  YamlNode where;                       ///< for errors; without its content
  YamlNode op;                          ///< its text may hold options
  YamlNode main;                        ///< what follows the op in the short form, unless a map
  std::vector<YamlNode> keys;           ///< those of its kind
  std::vector<YamlNode> values;         ///< one per key
  std::string name;                     ///< empty: it gets one from its kind
  std::optional<YamlNode> inputs = {};  ///< unset: the layer before
  std::optional<YamlNode> when = {};
};

struct LayerName {
  int line = 0;
  bool conditional = false;  ///< the layer has a `when`
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
  std::map<std::string, LayerName, std::less<>> names;  ///< of the layers that have one
  YamlNode loss;
  std::optional<YamlNode> scores, picture, picture_name;
};

/// The values that texts of the file may refer to: the options, and the sizes of images and classes.
Variables make_variables(const std::map<std::string, std::string>& options, const Shape& image, int64_t classes);
/// Names that no option may have.
bool is_size_variable(const std::string& name);

/// Whether a part of the file with this `when` applies.
bool applies(const YamlNode& when, const Variables& variables, const std::string& file);
/// The keys of a section: a map, or a list of maps that may have `when`, of which later ones win; where `short_key` is
/// given, one text alone is its value.
Arguments section(const YamlNode& node, const Variables& variables, const std::string& file, const std::string& subject,
                  const std::string& short_key = "");

/// A layer of a kind with its keys, checked; `title` is "layer 'fc1' (dense)".
struct LayerCall {
  const LayerKind* kind = nullptr;
  Arguments args;
  std::vector<std::string> inputs;  ///< names
  bool from_previous = false;       ///< the first input is the layer before, and `inputs` are the rest
};
LayerCall make_call(const LayerSpec& layer, const std::string& op, const std::string& title, const Variables& variables,
                    const std::string& file);

/// The training graph of the model for one request whose options are resolved.
nn::ModelGraph build_graph(const FileModel& model, nn::Graph& graph, const nn::BuildRequest& request);

}  // namespace lockstep::interchange
