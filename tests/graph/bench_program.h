// Parts that the tests of Program share: a model with its parameters and a batch of random images, ready to run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "base/random.h"
#include "lockstep/nn.h"
#include "lockstep/ops.h"
#include "program/parameters.h"
#include "program/program.h"

namespace lockstep::graph {

/// A model, its parameters and a batch of random images.
class Bench {
 public:
  Bench(const std::string& model, int64_t batch, const backend::Backend& backend, uint64_t seed = 1)
      : program_(make(model, batch, backend)),
        store_(program_.graph().parameters(), seed),
        images_(static_cast<size_t>(batch) * 784),
        labels_(static_cast<size_t>(batch)) {
    base::Sequence random(seed, 5);
    for (float& v : images_) v = random.uniform();
    for (int32_t& v : labels_) v = static_cast<int32_t>(random.below(10));
    program_.bind_input(0, images_.data());
    program_.bind_input(1, labels_.data());
    program_.bind_parameters(store_.values().data());
    program_.bind_gradients(store_.gradients().data());
  }

  program::Program& program() { return program_; }
  program::ParameterStore& store() { return store_; }
  float loss() { return *program_.output(0).as<float>().data(); }

 private:
  static program::Program make(const std::string& name, int64_t batch, const backend::Backend& backend) {
    Graph g;
    const auto model = nn::build(g, nn::find_model(name), {batch, true, {1, 28, 28}, 10, {}});
    const auto gradients = ops::gradients(model.loss);
    return program::Program(std::move(g), {model.loss, model.correct}, gradients, backend);
  }

  program::Program program_;
  program::ParameterStore store_;
  std::vector<float> images_;
  std::vector<int32_t> labels_;
};

inline std::unique_ptr<backend::Backend> cpu(int threads) {
  return backend::make_cpu_backend({.threads = threads, .reference_only = false});
}

}  // namespace lockstep::graph
