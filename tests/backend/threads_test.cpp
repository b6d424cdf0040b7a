// Our own kernels give the same bits with any number of threads, more than there are cores included.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backend/cpu/cpu_backend.h"
#include "base/random.h"
#include "lockstep/nn.h"
#include "lockstep/ops.h"
#include "program/program.h"

namespace lockstep::backend {
namespace {

constexpr uint64_t kSeed = 3;

/// A model's loss and gradients of a batch.
struct Outcome {
  float loss = 0;
  std::vector<float> gradients;
};

struct Inputs {
  std::vector<float> parameters;
  std::vector<float> images;
  std::vector<int32_t> labels;
};

Inputs draw(const nn::ModelDef& model, const graph::Graph& graph, int64_t batch) {
  base::Sequence random(kSeed, 1);
  Inputs inputs;
  for (const graph::ParameterInfo& parameter : graph.parameters()) {
    for (size_t i = 0; i < parameter.count(); ++i) inputs.parameters.push_back(0.1F * random.normal());
  }
  inputs.images.resize(static_cast<size_t>(batch * model.image.elements()));
  for (float& pixel : inputs.images) pixel = random.uniform();
  for (int64_t i = 0; i < batch; ++i) {
    inputs.labels.push_back(static_cast<int32_t>(random.below(static_cast<uint32_t>(model.classes))));
  }
  return inputs;
}

Outcome step(const nn::ModelDef& model, int64_t batch, int threads) {
  graph::Graph graph;
  const nn::ModelGraph built = nn::build(graph, model, {batch, true, model.image, model.classes, {}});
  const auto gradients = ops::gradients(built.loss);
  const auto backend = make_cpu_backend({.threads = threads});
  const Inputs inputs = draw(model, graph, batch);
  size_t count = 0;
  for (const graph::Node& node : graph.nodes()) count += node.op == graph::Op::input ? 1 : 0;
  program::Program program(std::move(graph), {built.loss}, gradients, *backend);
  Outcome outcome;
  outcome.gradients.resize(inputs.parameters.size());
  program.bind_parameters(inputs.parameters.data());
  program.bind_gradients(outcome.gradients.data());
  program.bind_input(0, inputs.images.data());
  if (count > 1) program.bind_input(1, inputs.labels.data());
  program.run({kSeed, 0, 0});
  outcome.loss = *program.output(0).as<float>().data();
  return outcome;
}

bool same_bits(const Outcome& a, const Outcome& b) {
  return std::memcmp(&a.loss, &b.loss, sizeof(float)) == 0 && a.gradients.size() == b.gradients.size() &&
         std::memcmp(a.gradients.data(), b.gradients.data(), a.gradients.size() * sizeof(float)) == 0;
}

class AnyThreads : public testing::TestWithParam<std::string> {};

TEST_P(AnyThreads, GiveTheSameBits) {
  const nn::ModelDef& model = nn::find_model(GetParam());
  for (const int64_t batch : {5, 64}) {
    const Outcome one = step(model, batch, 1);
    EXPECT_TRUE(std::isfinite(one.loss));
    for (const int threads : {2, 3, 5, 16, 64}) {
      EXPECT_TRUE(same_bits(step(model, batch, threads), one)) << threads << " threads, batch " << batch;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, AnyThreads, testing::Values("lr", "lenet", "autoencoder", "stn"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace lockstep::backend
