// Exports every zoo model, in each variant of its options, and models made of the other ops. Computes their outputs for
// some images, for onnxruntime_test.py to compare.
// onnx_reference [FOLDER MODEL]   without arguments: prints the names
// Writes for each variant i: i.onnx, i.images (float32) and i.expected (float32); variants.json describes them.
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "interchange/model_outputs.h"
#include "interchange/onnx_export.h"
#include "lockstep/ops.h"

namespace {

namespace ops = lockstep::ops;
using lockstep::graph::Graph;
using lockstep::graph::Value;
using lockstep::interchange::export_onnx;
using lockstep::nn::ModelDef;
using lockstep::testing::ModelRun;
using Options = std::map<std::string, std::string>;

constexpr int64_t kBatch = 3;

/// Returns the defaults, then each other value of each option.
std::vector<Options> variants(const ModelDef& model) {
  std::vector<Options> all{{}};
  for (const auto& option : model.options) {
    for (const std::string& value : option.allowed) {
      if (value != option.default_value) all.push_back({{option.name, value}});
    }
  }
  return all;
}

ModelDef define(const std::string& name, const lockstep::Shape& image,
                std::function<Value(Graph&, Value images)> scores) {
  ModelDef model;
  model.name = name;
  model.image = image;
  model.build = [scores = std::move(scores)](Graph& graph, const lockstep::nn::BuildRequest& request) {
    lockstep::nn::ModelGraph built;
    built.images = lockstep::nn::image_input(graph, request);
    built.scores = scores(graph, built.images);
    built.loss = ops::reduce_sum(built.scores);
    return built;
  };
  return model;
}

Value elementwise(Graph& graph, Value x) {
  const Value w = graph.parameter("w", {3, 1, 5}, lockstep::graph::Initializer::uniform(1));
  const Value positive = ops::add_scalar(ops::abs(ops::sub(x, w)), 0.5F);
  Value y = ops::div(ops::log(positive), ops::sqrt(ops::exp(ops::neg(x))));
  y = ops::maximum(y, ops::minimum(ops::square(w), ops::softplus(x)));
  return ops::mul(ops::tanh(y), ops::add(ops::sigmoid(w), ops::constant(graph, y.shape(), 0.25F)));
}

Value shapes(Graph& graph, Value x) {
  const int64_t batch = x.shape()[0];
  const Value row = graph.parameter("row", {1, 4}, lockstep::graph::Initializer::uniform(1));
  const std::vector<int64_t> order{0, 2, 3, 1};
  const std::vector<int> last{-1};
  const std::vector<int> plane{1, 2};
  const Value turned = ops::transpose(x, order);  // [N, 4, 5, 3]
  const Value means = ops::reduce_mean(turned, last);
  const Value tops = ops::reduce_max(turned, last, true);
  const Value wide = ops::broadcast_to(tops, {batch, 4, 5, 2});
  const Value rows = ops::reshape(ops::slice(means, 2, 1, 3), lockstep::Shape{batch * 4, 3});
  const Value sums = ops::reshape(ops::reduce_sum(rows, last), lockstep::Shape{batch, 4});
  const Value biased = ops::bias_add(turned, ops::reshape(row, lockstep::Shape{4}));
  const std::vector<Value> parts{sums,
                                 ops::broadcast_to(row, {batch, 4}),
                                 ops::reduce_sum(wide, plane),
                                 ops::flatten(ops::identity(biased)),
                                 ops::softmax(sums),
                                 ops::matmul(sums, ops::matmul(row, row, true), false, true)};
  return ops::concat(parts, 1);
}

Value lrn(Graph& graph, Value x) {
  const Value gain = graph.parameter("gain", {1}, lockstep::graph::Initializer::constant(20));
  return ops::lrn(ops::mul(x, gain), {.radius = 2, .alpha = 0.01F, .beta = 0.75F, .bias = 1.5F});
}

/// An image rotated, sheared and moved partly out of view.
template <lockstep::graph::Sampling kSampling>
Value sampled(Graph& graph, Value x) {
  const Value w = graph.parameter("w", {60, 6}, lockstep::graph::Initializer::uniform(0.05F));
  const Value b = graph.parameter("b", {6}, lockstep::graph::Initializer::list({0.8F, 0.4F, 0.3F, -0.5F, 1.1F, -0.2F}));
  const Value theta = ops::bias_add(ops::matmul(ops::flatten(x), w), b);
  return ops::bilinear_sample(x, ops::affine_grid(theta, 6, 7, kSampling), kSampling);
}

std::vector<ModelDef> made_of_ops() {
  const lockstep::Shape image{3, 4, 5};
  return {define("ops-elementwise", image, elementwise), define("ops-shapes", image, shapes),
          define("ops-lrn", {7, 4, 5}, lrn),
          define("ops-sampled-study", image, sampled<lockstep::graph::Sampling::study>),
          define("ops-sampled-half-pixel", image, sampled<lockstep::graph::Sampling::half_pixel>)};
}

void write_floats(const std::string& path, const std::vector<float>& values) {
  lockstep::base::write_whole_file(
      path, std::string_view(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
}

std::string text(const Options& options) {
  std::string all;
  for (const auto& [name, value] : options) all += " " + name + "=" + value;
  return all;
}

void write_model(const std::string& folder, const ModelDef& model) {
  nlohmann::json list = nlohmann::json::array();
  for (const Options& options : variants(model)) {
    for (const int64_t batch : {int64_t{0}, kBatch}) {
      const ModelRun run(
          model,
          {.batch = kBatch, .training = false, .image = model.image, .classes = model.classes, .options = options});
      auto request = run.request();
      request.batch = batch;
      const auto file = export_onnx(model, request, run.parameters());
      const std::string name = folder + "/" + std::to_string(list.size());
      lockstep::base::write_whole_file(name + ".onnx", file.bytes);
      write_floats(name + ".images", run.images());
      write_floats(name + ".expected", run.scores());
      const auto dims = model.image.dims();
      list.push_back({{"name", model.name + text(options)},
                      {"batch", batch},
                      {"images", kBatch},
                      {"image", std::vector<int64_t>(dims.begin(), dims.end())}});
    }
  }
  std::ofstream(folder + "/variants.json") << list.dump(1) << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::vector<ModelDef> models = lockstep::nn::zoo();
    for (const ModelDef& model : made_of_ops()) models.push_back(model);
    for (const ModelDef& model : models) {
      if (argc < 3) std::printf("%s\n", model.name.c_str());
      if (argc == 3 && model.name == argv[2]) write_model(argv[1], model);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "onnx_reference: %s\n", error.what());
    return 1;
  }
  return 0;
}
