#include "train/programs.h"

#include "lockstep/ops.h"

namespace lockstep::train {
namespace {

nn::BuildRequest build_request(const ModelSpec& spec, int64_t batch, bool training) {
  return {batch, training, spec.image, spec.classes, spec.options};
}

}  // namespace

graph::ParameterStore make_parameters(const ModelSpec& spec, uint64_t seed) {
  graph::Graph graph;
  nn::build(graph, *spec.model, build_request(spec, 1, true));
  return {graph.parameters(), seed};
}

Programs::Programs(ModelSpec spec, Purpose purpose, const backend::Backend& backend, const float* parameters,
                   float* gradients)
    : spec_(std::move(spec)), purpose_(purpose), backend_(backend), parameters_(parameters), gradients_(gradients) {}

graph::Program Programs::make(int64_t batch) const {
  graph::Graph graph;
  const bool training = purpose_ == Purpose::training;
  const nn::ModelGraph model = nn::build(graph, *spec_.model, build_request(spec_, batch, training));
  std::vector<graph::Value> outputs{model.loss, model.correct};
  std::vector<graph::Value> gradients;
  if (training) gradients = ops::gradients(model.loss);
  if (purpose_ == Purpose::prediction) outputs = {ops::softmax(model.scores)};
  return {std::move(graph), std::move(outputs), std::move(gradients), backend_};
}

graph::Program& Programs::find_or_make(int64_t batch) {
  for (const Entry& entry : entries_) {
    if (entry.batch != batch) continue;
    current_ = entry.program.get();
    current_batch_ = batch;
    return *current_;
  }
  auto program = std::make_unique<graph::Program>(make(batch));
  program->bind_parameters(parameters_);
  program->bind_gradients(gradients_);
  entries_.push_back({batch, std::move(program)});
  return find_or_make(batch);
}

void Programs::parameters_changed() {
  for (const Entry& entry : entries_) entry.program->parameters_changed();
}

}  // namespace lockstep::train
