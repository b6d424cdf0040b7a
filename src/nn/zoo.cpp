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
  return model.build(graph, checked);
}

}  // namespace lockstep::nn
