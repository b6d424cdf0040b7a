#include "lockstep/error.h"
#include "lockstep/nn.h"
#include "lockstep/ops.h"

namespace lockstep::nn {

Value dense(Value x, std::string_view name, int64_t units) {
  if (x.shape().rank() != 2) {
    throw ShapeError("dense '" + std::string(name) + "': x " + x.shape().str() + " must be a matrix; flatten it first");
  }
  return dense(x, name, units, graph::Initializer::xavier_uniform(x.shape()[1], units));
}

Value dense(Value x, std::string_view name, int64_t units, graph::Initializer weights, graph::Initializer bias) {
  const graph::Scope scope(x.graph(), name);
  const Value w = x.graph().parameter("weights", {x.shape()[1], units}, std::move(weights));
  const Value b = x.graph().parameter("bias", {units}, std::move(bias));
  return ops::bias_add(ops::matmul(x, w), b);
}

Value conv(Value x, std::string_view name, int64_t channels, int64_t kernel, int64_t stride, int64_t padding) {
  return conv(x, name, channels, ops::window(kernel, stride, padding));
}

Value conv(Value x, std::string_view name, int64_t channels, const graph::Window& window) {
  if (x.shape().rank() != 4) {
    throw ShapeError("conv '" + std::string(name) + "': x " + x.shape().str() + " must be [N, C, H, W]");
  }
  const graph::Scope scope(x.graph(), name);
  const int64_t in = x.shape()[1];
  const int64_t taps = window.kernel_h * window.kernel_w;
  const Value w = x.graph().parameter("weights", {channels, in, window.kernel_h, window.kernel_w},
                                      graph::Initializer::xavier_uniform(in * taps, channels * taps));
  const Value b = x.graph().parameter("bias", {channels}, graph::Initializer::zeros());
  return ops::bias_add(ops::conv2d(x, w, window), b);
}

Value image_input(Graph& graph, const BuildRequest& request) {
  const Shape& image = request.image;
  return graph.input("images", {DType::f32, {request.batch, image[0], image[1], image[2]}});
}

ModelGraph classifier(Value images, Value scores) {
  Graph& graph = scores.graph();
  const Value labels = graph.input("labels", {DType::i32, {scores.shape()[0]}});
  const graph::Scope scope(graph, "loss");
  const Value loss = ops::reduce_mean(ops::softmax_cross_entropy(scores, labels));
  return {images, labels, scores, loss, ops::reduce_sum(ops::correct(scores, labels))};
}

}  // namespace lockstep::nn
