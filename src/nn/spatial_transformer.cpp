// The spatial transformer network. A small network looks at the whole image and chooses an affine window. The window is
// sampled from the image and classified.
#include "lockstep/ops.h"
#include "nn/option_values.h"
#include "nn/zoo.h"

namespace lockstep::nn {
namespace {

constexpr int64_t kLocalisationUnits = 20;
constexpr int64_t kClassifierUnits = 1024;

Value dropped(Value x, const BuildRequest& request) {
  const float rate = fraction(request, "dropout");
  return request.training && rate > 0 ? ops::dropout(x, rate) : x;
}

/// Returns the affine map [N, 6] from window to image coordinates. It starts near the identity.
Value localise(Value images, const BuildRequest& request) {
  const graph::Scope scope(images.graph(), "localisation");
  const Value hidden = dropped(ops::tanh(dense(ops::flatten(images), "fc1", kLocalisationUnits)), request);
  return ops::tanh(dense(hidden, "theta", 6, graph::Initializer::xavier_uniform(kLocalisationUnits, 6),
                         graph::Initializer::list({1, 0, 0, 0, 1, 0})));
}

Value sample(Value images, Value theta, const BuildRequest& request) {
  const graph::Scope scope(images.graph(), "sampler");
  const ops::Sampling convention =
      request.options.at("sampling") == "study" ? ops::Sampling::study : ops::Sampling::half_pixel;
  const Value grid = ops::affine_grid(theta, images.shape()[2], images.shape()[3], convention);
  return ops::bilinear_sample(images, grid, convention);
}

Value small_features(Value x) {
  const auto half = [](Value image) { return ops::same_window(3, 2, image.shape()[2], image.shape()[3]); };
  x = ops::relu(conv(x, "conv1", 16, half(x)));
  return ops::relu(conv(x, "conv2", 16, half(x)));
}

Value large_features(Value x) {
  const ops::Window half = ops::window(2, 2);
  x = ops::max_pool(ops::relu(conv(x, "conv1", 16, 3, 1, 1)), half);
  x = ops::max_pool(ops::relu(conv(x, "conv2", 32, 3, 1, 1)), half);
  return ops::max_pool(ops::relu(conv(x, "conv3", 64, 3, 1, 1)), half);
}

ModelGraph build_stn(Graph& graph, const BuildRequest& request, Value (*features)(Value)) {
  const Value images = image_input(graph, request);
  const Value window = sample(images, localise(images, request), request);
  const Value x = ops::relu(dense(ops::flatten(features(window)), "fc1", kClassifierUnits));
  ModelGraph model = classifier(images, dense(dropped(x, request), "fc2", request.classes));
  model.picture = window;
  model.picture_name = "attention";
  return model;
}

ModelDef define(const std::string& name, const std::string& description, Value (*features)(Value)) {
  ModelDef model;
  model.name = name;
  model.description = description;
  model.image = {1, 40, 40};
  model.defaults = {
      .dataset = "cluttered-mnist", .optimizer = "adam", .learning_rate = 1e-3F, .batch = 100, .epochs = 80};
  model.options = {{"dropout", "share of values that dropout zeroes; 0: none", "0.2", {}},
                   {"sampling",
                    "position of pixels: as in the study, or at half pixels (PyTorch's align_corners=false)",
                    "study",
                    {"study", "half_pixel"}}};
  model.build = [features](Graph& graph, const BuildRequest& request) { return build_stn(graph, request, features); };
  return model;
}

}  // namespace

ModelDef stn() { return define("stn", "spatial transformer network", small_features); }
ModelDef stn_large() {
  return define("stn-large", "spatial transformer network, three convolutions with pooling", large_features);
}

}  // namespace lockstep::nn
