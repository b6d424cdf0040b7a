// examples/models holds the zoo as files. They have the same parameters in the same order with the same initial values,
// and give the same bits after some steps of training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "interchange/model_file.h"
#include "train/support.h"

namespace lockstep::train {
namespace {

using testing::Flags;
using testing::Training;

std::string file_of(const std::string& model) {
  const char* root = std::getenv("LOCKSTEP_SOURCE");  // NOLINT(concurrency-mt-unsafe)
  return std::string(root) + "/examples/models/" + model + ".yaml";
}

nn::ModelDef load(const std::string& model) {
  nn::ModelDef def = interchange::load_model(file_of(model));
  EXPECT_EQ(def.name, model);
  def.name = "file";
  return def;
}

struct Variant {
  std::string model;
  settings::Options options;
};

std::vector<Variant> variants() {
  return {{"lr", {}},
          {"lenet", {}},
          {"lenet", {{"pool", "avg"}, {"activation", "tanh"}}},
          {"lenet-valid", {}},
          {"lenet-valid", {{"pool", "max"}}},
          {"alexnet", {}},
          {"alexnet", {{"dropout", "0"}, {"lrn", "true"}}},
          {"alexnet", {{"features_only", "true"}}},
          {"autoencoder", {}},
          {"autoencoder", {{"kind", "gaussian"}}},
          {"autoencoder", {{"kind", "masking"}, {"hidden", "50"}}},
          {"autoencoder", {{"kind", "variational"}}},
          {"autoencoder-large", {}},
          {"stn", {}},
          {"stn", {{"sampling", "half_pixel"}, {"dropout", "0"}}},
          {"stn-large", {}}};
}

std::string text(const settings::Options& options) {
  std::string result;
  for (const auto& [name, value] : options) result += (result.empty() ? "" : ",") + name + "=" + value;
  return result;
}

std::string text(const graph::ParameterInfo& info) {
  const graph::Initializer& start = info.initializer;
  std::string result = info.name + " " + info.shape.str() + " kind " + std::to_string(static_cast<int>(start.kind)) +
                       " " + std::to_string(start.scale);
  for (const float value : start.values) result += " " + std::to_string(value);
  return result;
}

std::vector<std::string> parameters(const nn::ModelDef& def, const settings::Options& options) {
  nn::Graph graph;
  nn::build(graph, def, {2, true, def.image, def.classes, options});
  std::vector<std::string> result;
  for (const auto& info : graph.parameters()) result.push_back(text(info));
  return result;
}

struct Trajectory {
  std::vector<float> losses;
  std::vector<float> parameters;
  double eval_loss = 0;
};

Trajectory train(const nn::ModelDef& def, const settings::Options& options) {
  const auto side = [&](int axis) { return static_cast<int>(def.image[axis]); };
  const bool large = def.image.elements() > 10000;
  const int64_t batch = large ? 2 : 16;
  Flags flags{{"model", def.name}, {"batch", std::to_string(batch)}, {"steps", large ? "2" : "5"}, {"lr", "0.001"}};
  if (!options.empty()) flags["options"] = text(options);
  data::Dataset data =
      data::synthetic({.train = 6 * batch, .test = 2 * batch, .classes = 10, .shape = {side(0), side(1), side(2)}});
  Training training(flags, std::move(data), {def});
  training.run();
  return {training.recorder.losses(), training.parameters(), training.state.last_eval->loss};
}

TEST(ZooFiles, EveryModelOfTheZooIsThere) {
  for (const nn::ModelDef& model : nn::zoo()) {
    const nn::ModelDef file = load(model.name);
    EXPECT_EQ(file.image, model.image) << model.name;
    EXPECT_EQ(file.description, model.description);
    for (const nn::ModelOption& option : file.options) {
      EXPECT_EQ(nn::resolve_options(model, {}).at(option.name), option.default_value) << model.name << option.name;
    }
    EXPECT_EQ(file.classes, model.classes) << model.name;
    EXPECT_EQ(file.defaults.optimizer, model.defaults.optimizer) << model.name;
    EXPECT_FLOAT_EQ(file.defaults.learning_rate, model.defaults.learning_rate) << model.name;
    EXPECT_EQ(file.defaults.batch, model.defaults.batch) << model.name;
    EXPECT_EQ(file.defaults.epochs, model.defaults.epochs) << model.name;
    EXPECT_EQ(file.defaults.dataset, model.defaults.dataset) << model.name;
    EXPECT_EQ(file.defaults.pixels, model.defaults.pixels) << model.name;
  }
}

TEST(ZooFiles, HaveTheZoosParametersAndStart) {
  for (const Variant& v : variants()) {
    EXPECT_EQ(parameters(load(v.model), v.options), parameters(nn::find_model(v.model), v.options)) << v.model;
  }
}

TEST(ZooFiles, TrainToTheSameBits) {
  for (const Variant& v : variants()) {
    const Trajectory zoo = train(nn::find_model(v.model), v.options);
    const Trajectory file = train(load(v.model), v.options);
    ASSERT_GE(zoo.losses.size(), 2U);
    EXPECT_EQ(file.losses, zoo.losses) << v.model << " " << text(v.options);
    EXPECT_EQ(file.eval_loss, zoo.eval_loss) << v.model << " " << text(v.options);
    EXPECT_TRUE(file.parameters == zoo.parameters) << v.model << " " << text(v.options);
  }
}

}  // namespace
}  // namespace lockstep::train
