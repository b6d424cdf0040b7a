// A model made runnable: its parameters, and its programs for each batch size. Programs are made when a batch size is
// first seen (the full batch, the short last one) and kept, so that a step looks up one pointer.
//
// Programs borrow the backend and the parameter memory, which must outlive them. For one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "data/loader.h"
#include "lockstep/nn.h"
#include "program/parameters.h"
#include "program/program.h"
#include "settings/settings.h"

namespace lockstep::train {

/// A model with all that its graph depends on besides the batch size.
struct ModelSpec {
  const nn::ModelDef* model = nullptr;
  settings::Options options;
  Shape image;
  int64_t classes = 10;
};

/// The model's parameters at their initial values.
program::ParameterStore make_parameters(const ModelSpec& spec, uint64_t seed);

/// What a model has, whatever the batch size.
struct ModelTraits {
  bool labels = true;    ///< it needs them
  bool accuracy = true;  ///< its answers can be right or wrong
  nn::LossOver loss_over = nn::LossOver::mean;
  std::string picture;  ///< what it shows at evaluations: "reconstruction"; empty: nothing
};
ModelTraits traits_of(const ModelSpec& spec);

/// The graph of a training step, forward and backward, as it was built.
graph::Graph training_graph(const ModelSpec& spec, int64_t batch);

/// What a batch gave, added up over its examples.
struct BatchResult {
  double loss_sum = 0;
  int64_t correct = 0;
};

/// What a program is for: `training` gives loss, correct (of models that have it) and gradients; `evaluation` loss and
/// correct; `prediction` the probabilities of the classes, or the scores of a model that is no classifier; `picture`
/// what the model shows.
enum class Purpose : uint8_t { training, evaluation, prediction, picture };

class Programs {
 public:
  /// `gradients` is where training programs write; nullptr for the others.
  Programs(ModelSpec spec, Purpose purpose, const backend::Backend& backend, const float* parameters, float* gradients);

  /// The program for a batch of that size.
  program::Program& for_batch(int64_t batch) {
    if (batch == current_batch_) return *current_;
    return find_or_make(batch);
  }
  /// The program for a batch, bound to its images and labels.
  program::Program& bind(const data::Batch& batch);
  /// What a training or evaluation program found in its latest batch.
  [[nodiscard]] BatchResult result(const program::Program& program, int64_t examples) const;
  /// Must follow every change of the parameters' values.
  void parameters_changed();

  [[nodiscard]] const ModelSpec& spec() const { return spec_; }
  [[nodiscard]] const ModelTraits& traits() const { return traits_; }

 private:
  struct Entry {
    int64_t batch = 0;
    std::unique_ptr<program::Program> program;
  };

  program::Program& find_or_make(int64_t batch);
  [[nodiscard]] program::Program make(int64_t batch) const;
  [[nodiscard]] program::Program make_program(int64_t batch) const;

  ModelSpec spec_;
  ModelTraits traits_;
  Purpose purpose_;
  const backend::Backend& backend_;
  const float* parameters_;
  float* gradients_;
  std::vector<Entry> entries_;
  int64_t current_batch_ = -1;
  program::Program* current_ = nullptr;
};

}  // namespace lockstep::train
