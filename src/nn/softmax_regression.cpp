#include "lockstep/ops.h"
#include "nn/zoo.h"

namespace lockstep::nn {
namespace {

ModelGraph build_lr(Graph& graph, const BuildRequest& request) {
  const Value images = image_input(graph, request);
  return classifier(images, dense(ops::flatten(images), "softmax", request.classes, graph::Initializer::zeros()));
}

}  // namespace

ModelDef softmax_regression() {
  return {"lr",        "softmax regression: one linear layer, zero at the start",
          {1, 28, 28}, {.optimizer = "sgd", .learning_rate = 0.1F, .batch = 128, .epochs = 20},
          {},          build_lr};
}

}  // namespace lockstep::nn
