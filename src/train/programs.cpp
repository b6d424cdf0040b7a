#include "train/programs.h"

#include "lockstep/error.h"
#include "lockstep/ops.h"

namespace lockstep::train {
namespace {

nn::BuildRequest build_request(const ModelSpec& spec, int64_t batch, bool training) {
  return {batch, training, spec.image, spec.classes, spec.options};
}

}  // namespace

program::ParameterStore make_parameters(const ModelSpec& spec, uint64_t seed) {
  graph::Graph graph;
  nn::build(graph, *spec.model, build_request(spec, 1, true));
  try {
    return {graph.parameters(), seed};
  } catch (const MemoryError& error) {
    throw MemoryError("model '" + spec.model->name + "': its parameters alone: " + error.what());
  }
}

ModelTraits traits_of(const ModelSpec& spec) {
  graph::Graph graph;
  const nn::ModelGraph model = nn::build(graph, *spec.model, build_request(spec, 1, true));
  return {model.labels.valid(), model.correct.valid(), model.loss_over,
          model.picture.valid() ? model.picture_name : std::string()};
}

graph::Graph training_graph(const ModelSpec& spec, int64_t batch) {
  graph::Graph graph;
  ops::gradients(nn::build(graph, *spec.model, build_request(spec, batch, true)).loss);
  return graph;
}

Programs::Programs(ModelSpec spec, Purpose purpose, const backend::Backend& backend, const float* parameters,
                   float* gradients)
    : spec_(std::move(spec)),
      traits_(traits_of(spec_)),
      purpose_(purpose),
      backend_(backend),
      parameters_(parameters),
      gradients_(gradients) {}

program::Program Programs::make(int64_t batch) const {
  try {
    return make_program(batch);
  } catch (const MemoryError& error) {
    throw MemoryError("model '" + spec_.model->name + "' with a batch of " + std::to_string(batch) + " " +
                      error.what());
  }
}

program::Program Programs::make_program(int64_t batch) const {
  graph::Graph graph;
  const bool training = purpose_ == Purpose::training;
  const nn::ModelGraph model = nn::build(graph, *spec_.model, build_request(spec_, batch, training));
  std::vector<graph::Value> outputs{model.loss};
  if (traits_.accuracy) outputs.push_back(model.correct);
  std::vector<graph::Value> gradients;
  if (training) gradients = ops::gradients(model.loss);
  if (purpose_ == Purpose::prediction) outputs = {traits_.accuracy ? ops::softmax(model.scores) : model.scores};
  if (purpose_ == Purpose::picture) outputs = {model.picture};
  return {std::move(graph), std::move(outputs), std::move(gradients), backend_};
}

program::Program& Programs::find_or_make(int64_t batch) {
  for (const Entry& entry : entries_) {
    if (entry.batch != batch) continue;
    current_ = entry.program.get();
    current_batch_ = batch;
    return *current_;
  }
  auto program = std::make_unique<program::Program>(make(batch));
  program->bind_parameters(parameters_);
  program->bind_gradients(gradients_);
  entries_.push_back({batch, std::move(program)});
  return find_or_make(batch);
}

program::Program& Programs::bind(const data::Batch& batch) {
  program::Program& program = for_batch(batch.count);
  program.bind_input(0, batch.images);
  if (traits_.labels) program.bind_input(1, batch.labels);
  return program;
}

BatchResult Programs::result(const program::Program& program, int64_t examples) const {
  BatchResult result;
  result.loss_sum = static_cast<double>(program.output(0).as<float>()[0]);
  if (traits_.loss_over == nn::LossOver::mean) result.loss_sum *= static_cast<double>(examples);
  if (traits_.accuracy) result.correct = static_cast<int64_t>(program.output(1).as<float>()[0]);
  return result;
}

void Programs::parameters_changed() {
  for (const Entry& entry : entries_) entry.program->parameters_changed();
}

}  // namespace lockstep::train
