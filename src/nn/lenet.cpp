#include "lockstep/ops.h"
#include "nn/zoo.h"

namespace lockstep::nn {
namespace {

/// LeNet-5; `padding` of the first convolution is 2 for `lenet` and 0 for `lenet-valid`.
ModelGraph build_lenet(Graph& graph, const BuildRequest& request, int64_t padding) {
  const auto activate = request.options.at("activation") == "tanh" ? ops::tanh : ops::relu;
  const auto pool = request.options.at("pool") == "avg" ? ops::avg_pool : ops::max_pool;
  const ops::Window half = ops::window(2, 2);
  const Value images = image_input(graph, request);
  Value x = pool(activate(conv(images, "conv1", 6, 5, 1, padding)), half);
  x = pool(activate(conv(x, "conv2", 16, 5)), half);
  x = activate(dense(ops::flatten(x), "fc1", 120));
  x = activate(dense(x, "fc2", 84));
  return classifier(images, dense(x, "fc3", request.classes));
}

std::vector<ModelOption> lenet_options(const std::string& pool) {
  return {{"activation", "the non-linearity after each layer", "relu", {"relu", "tanh"}},
          {"pool", "how 2x2 windows are pooled", pool, {"max", "avg"}}};
}

}  // namespace

ModelDef lenet() {
  return {"lenet",
          "LeNet-5: two convolutions, three dense layers",
          {1, 28, 28},
          {.optimizer = "adam", .learning_rate = 1e-3F, .batch = 64, .epochs = 20},
          lenet_options("max"),
          [](Graph& graph, const BuildRequest& request) { return build_lenet(graph, request, 2); }};
}

ModelDef lenet_valid() {
  return {
      "lenet-valid",        "LeNet-5 without padding, average pooling",
      {1, 28, 28},          {.optimizer = "sgd", .learning_rate = 0.1F, .batch = 64, .epochs = 20},
      lenet_options("avg"), [](Graph& graph, const BuildRequest& request) { return build_lenet(graph, request, 0); }};
}

}  // namespace lockstep::nn
