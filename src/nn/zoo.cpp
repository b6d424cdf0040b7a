#include "nn/zoo.h"

#include <algorithm>

#include "base/suggest.h"
#include "lockstep/error.h"

namespace lockstep::nn {
namespace {

void check_image(const ModelDef& model, const BuildRequest& request) {
  if (request.image == model.image) return;
  throw UsageError("model '" + model.name + "' takes images " + model.image.str() + " (channels, height, width), got " +
                   request.image.str());
}

/// What trainers rely on, whoever wrote the model.
void check_built(const Graph& graph, const ModelDef& model, const BuildRequest& request, const ModelGraph& built) {
  const auto require = [&](bool holds, const std::string& what) {
    if (!holds) throw ShapeError("model '" + model.name + "': " + what);
  };
  for (const Value& value : {built.images, built.labels, built.scores, built.loss, built.correct}) {
    require(value.valid() && &value.graph() == &graph, "images, labels, scores, loss and correct must all be set");
  }
  std::vector<graph::ValueId> inputs;
  for (int32_t i = 0; i < static_cast<int32_t>(graph.nodes().size()); ++i) {
    if (graph.node(i).op == graph::Op::input) inputs.push_back({i, 0});
  }
  require(inputs == std::vector<graph::ValueId>{built.images.id(), built.labels.id()},
          "its graph must have two inputs, images and then labels; it has " + std::to_string(inputs.size()));
  const Shape scores{request.batch, request.classes};
  require(built.scores.shape() == scores,
          "scores " + built.scores.shape().str() + " must be " + scores.str() + " (batch, classes)");
  require(built.loss.shape() == Shape{} && built.correct.shape() == Shape{},
          "loss " + built.loss.shape().str() + " and correct " + built.correct.shape().str() + " must be scalars []");
}

}  // namespace

const std::vector<ModelDef>& zoo() {
  static const std::vector<ModelDef> models{softmax_regression(), lenet(), lenet_valid()};
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

ModelGraph build(Graph& graph, const ModelDef& model, const BuildRequest& request) {
  check_image(model, request);
  BuildRequest checked = request;
  checked.options = resolve_options(model, request.options);
  const ModelGraph built = model.build(graph, checked);
  check_built(graph, model, request, built);
  return built;
}

}  // namespace lockstep::nn
