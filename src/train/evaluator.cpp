#include "train/evaluator.h"

#include "lockstep/error.h"

namespace lockstep::train {
namespace {

const data::Examples& checked(const data::Examples& examples) {
  if (examples.empty()) throw UsageError("cannot evaluate: the split is empty");
  if (examples.labels.empty()) throw UsageError("cannot evaluate: the examples have no labels");
  return examples;
}

}  // namespace

Evaluator::Evaluator(const ModelSpec& spec, const backend::Backend& backend, const float* parameters,
                     const data::Examples& examples, int64_t batch)
    : programs_(spec, Purpose::evaluation, backend, parameters, nullptr),
      loader_(checked(examples), data::LoaderOptions::evaluation(batch)) {}

Metrics Evaluator::run() {
  programs_.parameters_changed();
  double loss = 0;
  double correct = 0;
  int64_t examples = 0;
  while (const data::Batch* batch = loader_.next()) {
    graph::Program& program = programs_.for_batch(batch->count);
    program.bind_input(0, batch->images);
    program.bind_input(1, batch->labels);
    program.run({});
    loss += static_cast<double>(program.output(0).as<float>()[0]) * static_cast<double>(batch->count);
    correct += static_cast<double>(program.output(1).as<float>()[0]);
    examples += batch->count;
  }
  loader_.restart();
  return {loss / static_cast<double>(examples), correct / static_cast<double>(examples), examples};
}

}  // namespace lockstep::train
