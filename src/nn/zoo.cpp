#include "nn/zoo.h"

#include <algorithm>

#include "base/suggest.h"
#include "lockstep/error.h"

namespace lockstep::nn {
namespace {

/// Checks the properties that trainers rely on, for models of any origin.
void check_built(const Graph& graph, const ModelDef& model, const BuildRequest& request, const ModelGraph& built) {
  const auto require = [&](bool holds, const std::string& what) {
    if (!holds) throw ShapeError("model '" + model.name + "': " + what);
  };
  for (const Value& value : {built.images, built.scores, built.loss}) {
    require(value.valid() && &value.graph() == &graph, "images, scores and loss must all be set");
  }
  require(built.labels.valid() || !built.correct.valid(), "correct needs labels");
  std::vector<graph::ValueId> inputs;
  for (int32_t i = 0; i < static_cast<int32_t>(graph.nodes().size()); ++i) {
    if (graph.node(i).op == graph::Op::input) inputs.push_back({i, 0});
  }
  std::vector<graph::ValueId> expected{built.images.id()};
  if (built.labels.valid()) expected.push_back(built.labels.id());
  require(inputs == expected, "its graph must have the inputs images and then labels (where it has labels); it has " +
                                  std::to_string(inputs.size()) + " inputs");
  const Shape scores{request.batch, request.classes};
  require(!built.correct.valid() || built.scores.shape() == scores,
          "scores " + built.scores.shape().str() + " must be " + scores.str() + " (batch, classes)");
  require(built.loss.shape() == Shape{}, "loss " + built.loss.shape().str() + " must be a scalar []");
  require(!built.correct.valid() || built.correct.shape() == Shape{}, "correct must be a scalar []");
  const bool pictured = !built.picture.valid() || built.picture.shape() == built.images.shape();
  require(pictured, "picture " + (built.picture.valid() ? built.picture.shape().str() : std::string()) +
                        " must be of the images' shape " + built.images.shape().str());
}

/// Builds for images of any shape. If they do not fit the model, the error speaks of the images.
ModelGraph build_for_image(Graph& graph, const ModelDef& model, const BuildRequest& request) {
  if (request.image == model.image) return model.build(graph, request);
  try {
    return model.build(graph, request);
  } catch (const ShapeError& error) {
    const bool rows = request.image[1] == 1;
    throw UsageError("model '" + model.name + "' cannot take " +
                     (rows ? "rows of " + std::to_string(request.image.elements()) + " values"
                           : "images " + request.image.str() + " (channels, height, width)") +
                     ": " + error.what() + "; it is made for " + model.image.str());
  }
}

}  // namespace

const std::vector<ModelDef>& zoo() {
  static const std::vector<ModelDef> models{softmax_regression(), lenet(), lenet_valid(), alexnet(), autoencoder(),
                                            autoencoder_large(),  stn(),   stn_large()};
  return models;
}

const ModelDef& find_model(std::string_view name) {
  std::vector<std::string> names;
  for (const ModelDef& model : zoo()) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  throw UsageError("unknown model '" + std::string(name) + "'" + base::hint(name, names));
}

std::map<std::string, std::string> resolve_options(const ModelDef& model,
                                                   const std::map<std::string, std::string>& given) {
  std::map<std::string, std::string> resolved;
  std::vector<std::string> names;
  for (const ModelOption& option : model.options) {
    resolved[option.name] = option.default_value;
    names.push_back(option.name);
  }
  for (const auto& [name, value] : given) {
    const auto option = std::find_if(model.options.begin(), model.options.end(),
                                     [&, key = name](const auto& known) { return known.name == key; });
    if (option == model.options.end()) {
      throw UsageError("model '" + model.name + "' has no option '" + name + "'" +
                       (names.empty() ? " (it has none)" : base::hint(name, names)));
    }
    const auto& allowed = option->allowed;
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
      throw UsageError("model option '" + name + "': '" + value + "'" + base::hint(value, allowed));
    }
    resolved[name] = value;
  }
  return resolved;
}

TrainingDefaults defaults_for(const ModelDef& model, const std::map<std::string, std::string>& options) {
  TrainingDefaults defaults = model.defaults;
  if (model.adjust) model.adjust(options, defaults);
  return defaults;
}

ModelGraph build(Graph& graph, const ModelDef& model, const BuildRequest& request) {
  BuildRequest checked = request;
  checked.options = resolve_options(model, request.options);
  const ModelGraph built = build_for_image(graph, model, checked);
  check_built(graph, model, checked, built);
  return built;
}

}  // namespace lockstep::nn
