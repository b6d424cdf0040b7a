#include "model_facts.h"

#include <fmt/format.h>

#include "terminal/text.h"

namespace lockstep::tools {

size_t parameter_count(const nn::ModelDef& model) {
  graph::Graph graph;
  nn::BuildRequest request;
  request.image = model.image;
  request.classes = model.classes;
  nn::build(graph, model, request);
  return graph.parameter_count();
}

std::string training_text(const nn::ModelDef& model) {
  const nn::TrainingDefaults& defaults = model.defaults;
  return fmt::format("{} {}, batch {}, {}", defaults.optimizer, defaults.learning_rate, defaults.batch,
                     terminal::counted(static_cast<uint64_t>(defaults.epochs), "epoch"));
}

}  // namespace lockstep::tools
