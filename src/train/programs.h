// A runnable model: its parameters, and its programs for each batch size. A program is made when its batch size is
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

/// A model and everything that its graph depends on, except the batch size.
struct ModelSpec {
  const nn::ModelDef* model = nullptr;
  settings::Options options;
  Shape image;
  int64_t classes = 10;
};

/// Makes the model's parameters with their initial values.
program::ParameterStore make_parameters(const ModelSpec& spec, uint64_t seed);

/// Properties of a model that do not depend on the batch size.
struct ModelTraits {
  bool labels = true;    ///< needs labels
  bool accuracy = true;  ///< has an accuracy: its answers can be right or wrong
  nn::LossOver loss_over = nn::LossOver::mean;
  std::string picture;  ///< name of the picture it makes at evaluations: "reconstruction"; empty: none
};
ModelTraits traits_of(const ModelSpec& spec);

/// Returns the graph of a training step, forward and backward, as it was built.
graph::Graph training_graph(const ModelSpec& spec, int64_t batch);

/// The results of a batch, summed over its examples.
struct BatchResult {
  double loss_sum = 0;
  int64_t correct = 0;
};

/// The output of a program: `training` gives loss, correct (if the model has it) and gradients; `evaluation` loss and
/// correct; `prediction` the probabilities of the classes, or the scores of a model that is no classifier; `picture`
/// the model's picture.
enum class Purpose : uint8_t { training, evaluation, prediction, picture };

class Programs {
 public:
  /// Training programs write to `gradients`; nullptr for the others.
  Programs(ModelSpec spec, Purpose purpose, const backend::Backend& backend, const float* parameters, float* gradients);

  /// Returns the program for a batch of that size.
  program::Program& for_batch(int64_t batch) {
    if (batch == current_batch_) return *current_;
    return find_or_make(batch);
  }
  /// Returns the program for a batch, bound to its images and labels.
  program::Program& bind(const data::Batch& batch);
  /// Returns the result of a training or evaluation program's latest batch.
  [[nodiscard]] BatchResult result(const program::Program& program, int64_t examples) const;
  /// Must be called after every change of the parameters' values.
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
