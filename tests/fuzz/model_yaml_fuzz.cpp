// The reader of model files must answer any bytes with a model or a UsageError. An accepted model must build, gradients
// included, for a batch of one and two, in training and outside, or be refused with an error.
#include <cstddef>
#include <cstdint>
#include <string>

#include "interchange/yaml_model.h"
#include "lockstep/error.h"
#include "lockstep/ops.h"

namespace {

constexpr size_t kMostNodes = 5000;

void build(const lockstep::nn::ModelDef& model, int64_t batch, bool training) {
  lockstep::graph::Graph graph;
  try {
    const auto built = lockstep::nn::build(graph, model, {batch, training, model.image, model.classes, {}});
    if (training && graph.nodes().size() < kMostNodes) (void)lockstep::ops::gradients(built.loss);
  } catch (const lockstep::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const std::string text(reinterpret_cast<const char*>(data), size);
    const lockstep::nn::ModelDef model = lockstep::interchange::parse_yaml_model(text, "fuzz.yaml");
    build(model, 1, true);
    build(model, 2, false);
  } catch (const lockstep::UsageError&) {
  }
  return 0;
}
