#include "train/evaluator.h"

#include "lockstep/error.h"

namespace lockstep::train {
namespace {

const data::Examples& checked(const data::Examples& examples, const ModelTraits& traits) {
  if (examples.empty()) throw UsageError("cannot evaluate: the split is empty");
  if (traits.labels && examples.labels.empty()) throw UsageError("cannot evaluate: the examples have no labels");
  return examples;
}

data::LoaderOptions loader_options(int64_t batch, const data::PixelScaling* pixels) {
  data::LoaderOptions options = data::LoaderOptions::evaluation(batch);
  options.pixels = pixels;
  return options;
}

}  // namespace

Evaluator::Evaluator(const ModelSpec& spec, const backend::Backend& backend, const float* parameters,
                     const data::Examples& examples, int64_t batch, const data::PixelScaling* pixels)
    : programs_(spec, Purpose::evaluation, backend, parameters, nullptr),
      loader_(checked(examples, programs_.traits()), loader_options(batch, pixels)) {}

Metrics Evaluator::run() {
  programs_.parameters_changed();
  double loss = 0;
  int64_t correct = 0;
  int64_t examples = 0;
  while (const data::Batch* batch = loader_.next()) {
    program::Program& program = programs_.bind(*batch);
    program.run({});
    const BatchResult result = programs_.result(program, batch->count);
    loss += result.loss_sum;
    correct += result.correct;
    examples += batch->count;
  }
  loader_.restart();
  const auto count = static_cast<double>(examples);
  return {loss / count, programs_.traits().accuracy ? static_cast<double>(correct) / count : 0, examples,
          programs_.traits().accuracy};
}

}  // namespace lockstep::train
