// A model's outputs for some images, for comparison. Parameters come from a seed, all moved a little so that none is
// zero; images come from the same generator.
#pragma once

#include <vector>

#include "lockstep/nn.h"
#include "program/parameters.h"
#include "program/program.h"
#include "settings/machine.h"

namespace lockstep::testing {

inline std::vector<float> noise(size_t count, uint64_t seed) {
  std::vector<float> values(count);
  uint64_t state = seed * 2 + 1;
  for (float& value : values) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    value = static_cast<float>(state >> 40U) / static_cast<float>(1U << 24U);
  }
  return values;
}

class ModelRun {
 public:
  ModelRun(const nn::ModelDef& model, const nn::BuildRequest& request, float moved_by = 0.02F)
      : model_(&model), request_(request) {
    request_.training = false;
    graph::Graph graph;
    nn::build(graph, model, request_);
    const program::ParameterStore store(graph.parameters(), 7);
    parameters_.assign(store.values().begin(), store.values().end());
    const std::vector<float> moves = noise(parameters_.size(), 1);
    for (size_t i = 0; i < moves.size(); ++i) parameters_[i] += moved_by * (moves[i] - 0.5F);
    images_ = noise(static_cast<size_t>(request_.batch * request_.image.elements()), 2);
  }

  /// Returns the scores for images().
  [[nodiscard]] std::vector<float> scores() const {
    graph::Graph graph;
    const nn::ModelGraph built = nn::build(graph, *model_, request_);
    const auto backend = settings::make_backend("cpu", 1);
    program::Program program(std::move(graph), {built.scores}, {}, *backend);
    program.bind_input(0, images_.data());
    program.bind_parameters(parameters_.data());
    program.run({});
    const auto values = program.output(0).as<float>();
    return {values.begin(), values.end()};
  }

  [[nodiscard]] const nn::BuildRequest& request() const { return request_; }
  [[nodiscard]] const std::vector<float>& parameters() const { return parameters_; }
  [[nodiscard]] const std::vector<float>& images() const { return images_; }
  void set_images(std::vector<float> images) { images_ = std::move(images); }
  void set_parameters(std::vector<float> parameters) { parameters_ = std::move(parameters); }

 private:
  const nn::ModelDef* model_;
  nn::BuildRequest request_;
  std::vector<float> parameters_;
  std::vector<float> images_;
};

}  // namespace lockstep::testing
