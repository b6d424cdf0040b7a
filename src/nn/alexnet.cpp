#include "lockstep/ops.h"
#include "nn/option_values.h"
#include "nn/zoo.h"

namespace lockstep::nn {
namespace {

Value dropped(Value x, const BuildRequest& request, float rate) {
  return request.training && rate > 0 ? ops::dropout(x, rate) : x;
}

/// The convolutions, to the last pool.
Value features(Value images, const BuildRequest& request, bool same_padding) {
  const bool lrn = flag(request, "lrn");
  const ops::Window shrink = ops::window(3, 2);
  const auto normalised = [&](Value x) { return lrn ? ops::lrn(x) : x; };
  const Shape& image = images.shape();
  const ops::Window first = same_padding ? ops::same_window(11, 4, image[2], image[3]) : ops::window(11, 4, 2);
  Value x = normalised(ops::relu(conv(images, "conv1", 64, first)));
  x = ops::max_pool(x, shrink);
  x = normalised(ops::relu(conv(x, "conv2", 192, 5, 1, 2)));
  x = ops::max_pool(x, shrink);
  x = ops::relu(conv(x, "conv3", 384, 3, 1, 1));
  x = ops::relu(conv(x, "conv4", 256, 3, 1, 1));
  x = ops::relu(conv(x, "conv5", 256, 3, 1, 1));
  return ops::max_pool(x, shrink);
}

/// Returns the model of TensorFlow's AlexNet benchmark, which ends here: half the sum of squares of the features.
ModelGraph features_alone(Value images, Value x) {
  ModelGraph model;
  model.images = images;
  model.scores = ops::flatten(x);
  const graph::Scope scope(x.graph(), "loss");
  model.loss = ops::scale(ops::reduce_sum(ops::square(model.scores)), 0.5F);
  model.loss_over = LossOver::sum;
  return model;
}

ModelGraph build_alexnet(Graph& graph, const BuildRequest& request) {
  const Value images = image_input(graph, request);
  const bool features_only = flag(request, "features_only");
  const float rate = fraction(request, "dropout");
  Value x = features(images, request, features_only);
  if (features_only) return features_alone(images, x);
  x = ops::relu(dense(dropped(ops::flatten(x), request, rate), "fc1", 4096));
  x = ops::relu(dense(dropped(x, request, rate), "fc2", 4096));
  return classifier(images, dense(x, "fc3", request.classes));
}

void adjust_alexnet(const std::map<std::string, std::string>& options, TrainingDefaults& defaults) {
  if (options.at("features_only") == "true") defaults.learning_rate = 1e-6F;  // its loss is a sum over the batch
}

}  // namespace

ModelDef alexnet() {
  ModelDef model;
  model.name = "alexnet";
  model.description = "AlexNet: five convolutions, three dense layers";
  model.image = {3, 224, 224};
  model.classes = 1000;
  model.defaults = {.dataset = "images", .optimizer = "sgd", .learning_rate = 0.01F, .batch = 128, .epochs = 1};
  model.options = {{"dropout", "share of values that dropout zeroes before fc1 and fc2; 0: none", "0.5", {}},
                   {"lrn", "local response normalisation after the first two layers", "false", {"false", "true"}},
                   {"features_only", "end at the last pool with an L2 objective", "false", {"false", "true"}}};
  model.build = build_alexnet;
  model.adjust = adjust_alexnet;
  return model;
}

}  // namespace lockstep::nn
