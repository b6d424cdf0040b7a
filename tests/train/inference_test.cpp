#include "inspect/inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <numeric>

#include "inspect/describe.h"
#include "role/session.h"
#include "support.h"

namespace lockstep::train {
namespace {

using ::testing::AllOf;
using testing::Flags;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;
using testing::TempDir;

Outcome trained(const TempDir& dir, const Flags& more = {}) {
  Request request;
  request.settings = {{"model", "lr"},  {"dataset", "synthetic"}, {"train-limit", "1000"},   {"test-limit", "200"},
                      {"batch", "100"}, {"epochs", "3"},          {"runs-dir", dir / "runs"}};
  for (const auto& [name, text] : more) request.settings[name] = text;
  return train(request);
}

data::Examples images_of(data::ImageShape shape) {
  data::Examples none;
  none.shape = shape;
  return none;
}

TEST(Evaluate, GivesWhatTrainingSaw) {
  const TempDir dir;
  const Outcome outcome = trained(dir);
  const inspect::TrainedModel model = inspect::load_model({outcome.run_dir, "", "runs", {}});
  const Metrics metrics = inspect::evaluate(model, {});
  EXPECT_EQ(metrics.examples, 200);
  EXPECT_DOUBLE_EQ(metrics.loss, outcome.last_eval->loss);
  EXPECT_DOUBLE_EQ(metrics.accuracy, outcome.last_eval->accuracy);
  EXPECT_EQ(inspect::evaluate(model, {.split = "train"}).examples, 1000);
  EXPECT_EQ(inspect::evaluate(model, {.limit = 30}).examples, 30);
  EXPECT_THAT(message_of<UsageError>([&] { inspect::evaluate(model, {.split = "validation"}); }), HasSubstr("empty"));
  EXPECT_THAT(message_of<UsageError>([&] { inspect::evaluate(model, {.split = "tset"}); }), HasSubstr("tset"));
}

TEST(Evaluate, ScalesPixelsAsTheRunDid) {
  const TempDir dir;
  const Outcome outcome = trained(dir, {{"pixels", "standard"}, {"data-scale", "2.5"}, {"epochs", "1"}});
  EXPECT_EQ(outcome.examples, 2500U);
  EXPECT_EQ(outcome.steps, 25U);
  const inspect::TrainedModel model = inspect::load_model({outcome.run_dir, "", "runs", {}});
  EXPECT_DOUBLE_EQ(inspect::evaluate(model, {}).loss, outcome.last_eval->loss);
  EXPECT_EQ(inspect::evaluate(model, {.split = "train"}).examples, 1000);
  const data::PixelScaling pixels = inspect::pixel_scaling(model);
  EXPECT_EQ(pixels.mean.size(), 784U);
  const data::Dataset dataset = inspect::load_data(model, {});
  int64_t right = 0;
  const auto predictions = inspect::predict(model, dataset.test, 0, "cpu", &pixels);
  for (size_t i = 0; i < predictions.size(); ++i) right += predictions[i].label == dataset.test.labels[i] ? 1 : 0;
  EXPECT_DOUBLE_EQ(static_cast<double>(right) / 200, outcome.last_eval->accuracy);
}

TEST(Evaluate, OwnDataIsSplitAsInTheRun) {
  const TempDir dir;
  std::string csv;
  for (int i = 0; i < 120; ++i) {
    const int label = i * 7 % 3;
    for (int p = 0; p < 784; ++p) csv += p % 3 == label ? "0.5," : "0,";
    csv += "cab"[label];
    csv += '\n';
  }
  testing::put_file(dir / "own.csv", {reinterpret_cast<const uint8_t*>(csv.data()), csv.size()});
  const Outcome outcome = trained(dir, {{"dataset", dir / "own.csv"},
                                        {"train-limit", "0"},
                                        {"test-limit", "0"},
                                        {"test-size", "30"},
                                        {"batch", "10"},
                                        {"epochs", "20"}});
  EXPECT_EQ(outcome.last_eval->examples, 30);
  EXPECT_EQ(outcome.last_eval->accuracy, 1);
  const inspect::TrainedModel model = inspect::load_model({outcome.run_dir, "", "runs", {}});
  EXPECT_EQ(model.header.class_names, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_DOUBLE_EQ(inspect::evaluate(model, {}).loss, outcome.last_eval->loss);
}

TEST(LoadModel, FindsRunsByNameAndCheckpointsByFileNewestOrBest) {
  const TempDir dir;
  const Outcome outcome = trained(dir);
  const inspect::TrainedModel newest = inspect::load_model({"lr-1", "", dir / "runs", {}});
  EXPECT_EQ(newest.header.state.step, 30U);
  EXPECT_EQ(inspect::load_model({newest.file, "", "runs", {}}).header.state.step, 30U);
  const inspect::TrainedModel best = inspect::load_model({outcome.run_dir, "best", "runs", {}});
  EXPECT_EQ(best.header.state.step, outcome.best_eval->step);
  EXPECT_EQ(inspect::load_model({outcome.run_dir, "step-000000010.ckpt", "runs", {}}).header.state.step, 10U);
  EXPECT_THROW(inspect::load_model({"lr-9", "", dir / "runs", {}}), UsageError);
  EXPECT_THROW(inspect::load_model({outcome.run_dir, "nope", "runs", {}}), UsageError);
}

TEST(LoadModel, NeedsTrainedParameters) {
  const TempDir dir;
  constexpr std::array<uint8_t, 3> kBytes{8, 7, 18};
  put_file(dir / "lenet.yaml", kBytes);
  EXPECT_THAT(
      message_of<UsageError>([&] {
        inspect::load_model({dir / "lenet.yaml", "", "runs", {}});
      }),
      AllOf(HasSubstr("lenet.yaml is a model file without trained parameters"), HasSubstr("`lockstep describe")));
  put_file(dir / "lenet.onnx", kBytes);
  EXPECT_THAT(message_of<DataError>([&] {
                inspect::load_model({dir / "lenet.onnx", "", "runs", {}});
              }),
              HasSubstr("lenet.onnx': it is not an ONNX file, or is damaged"));
  put_file(dir / "other.bin", kBytes);
  EXPECT_THAT(message_of<DataError>([&] {
                inspect::load_model({dir / "other.bin", "", "runs", {}});
              }),
              AllOf(HasSubstr("is not a checkpoint"), Not(HasSubstr("\\x"))));
}

TEST(Predict, GivesProbabilitiesThatAgreeWithTheAccuracy) {
  const TempDir dir;
  const Outcome outcome = trained(dir);
  const inspect::TrainedModel model = inspect::load_model({outcome.run_dir, "", "runs", {}});
  const data::Dataset dataset = data::synthetic({.train = 10000, .test = 2000});
  data::Examples images = dataset.test;
  data::keep_first(images, 200, "test");
  const std::vector<int32_t> labels = images.labels;
  images.labels.clear();
  const std::vector<inspect::Prediction> predictions = inspect::predict(model, images);
  ASSERT_EQ(predictions.size(), 200U);
  int right = 0;
  for (size_t i = 0; i < predictions.size(); ++i) {
    const inspect::Prediction& prediction = predictions[i];
    ASSERT_EQ(prediction.probabilities.size(), 10U);
    EXPECT_NEAR(std::accumulate(prediction.probabilities.begin(), prediction.probabilities.end(), 0.0), 1, 1e-5);
    EXPECT_EQ(prediction.probability, prediction.probabilities[static_cast<size_t>(prediction.label)]);
    right += prediction.label == labels[i] ? 1 : 0;
  }
  EXPECT_DOUBLE_EQ(right / 200.0, outcome.last_eval->accuracy);
  EXPECT_TRUE(inspect::predict(model, images_of({1, 28, 28})).empty());
  EXPECT_THAT(message_of<DataError>([&] {
                inspect::predict(model, images_of({3, 32, 32}));
              }),
              AllOf(HasSubstr("images 1x28x28"), HasSubstr("3x32x32")));
}

TEST(Describe, CountsLayersParametersAndArithmeticOfLeNet) {
  const inspect::ModelDescription lenet = inspect::describe({.model = &nn::find_model("lenet"), .batch = 2});
  EXPECT_EQ(lenet.parameters, 61706U);
  const auto layer = [&](const std::string& name) {
    for (const inspect::LayerInfo& info : lenet.layers) {
      if (info.name == name) return info;
    }
    ADD_FAILURE() << "no layer " << name;
    return inspect::LayerInfo{};
  };
  EXPECT_EQ(layer("conv1").parameters, 156U);
  EXPECT_EQ(layer("conv1").output, (Shape{2, 6, 28, 28}));
  // 25 multiplications and additions per output, and its bias.
  EXPECT_EQ(layer("conv1").forward_flops, 2U * 6 * 28 * 28 * (2 * 25 + 1));
  // Only the weights have a gradient, not the images.
  EXPECT_EQ(layer("conv1").backward_flops, layer("conv1").forward_flops);
  EXPECT_EQ(layer("fc1").parameters, 400U * 120 + 120);
  EXPECT_EQ(layer("fc1").forward_flops, 2U * 120 * (2 * 400 + 1));
  // Both gradients of a dense layer cost as much as its product.
  EXPECT_GE(layer("fc1").backward_flops, 2 * 2U * 120 * 2 * 400);
  EXPECT_EQ(layer("fc3").output, (Shape{2, 10}));
  EXPECT_GT(lenet.backward_flops, lenet.forward_flops);
  EXPECT_EQ(lenet.memory.parameter_bytes, 61706U * 4);
  EXPECT_EQ(lenet.memory.optimizer_bytes, 2 * 61706U * 4) << "Adam has two slots";
  EXPECT_GT(lenet.memory.arena_bytes, 0U);
  EXPECT_LE(lenet.memory.arena_bytes, lenet.memory.unshared_bytes);
  EXPECT_FALSE(lenet.kernels.empty());
}

TEST(Describe, WorksOnTheNullBackendToo) {
  const inspect::ModelDescription lr =
      inspect::describe({.model = &nn::find_model("lr"), .batch = 100, .backend = "null"});
  EXPECT_EQ(lr.parameters, 7850U);
  EXPECT_EQ(lr.memory.optimizer_bytes, 0U);
}

}  // namespace
}  // namespace lockstep::train
