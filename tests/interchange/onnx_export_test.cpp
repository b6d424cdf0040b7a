// Parts that an export leaves out, and models that it refuses. onnxruntime_test.py checks the numbers.
#include "interchange/onnx_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temp_dir.h"
#include "interchange/onnx_writer.h"
#include "lockstep/error.h"
#include "lockstep/ops.h"
#include "onnx.pb.h"
#include "ops/op_table.h"

namespace lockstep::interchange {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;

nn::ModelDef model_of(std::function<nn::Value(nn::Value)> scores) {
  nn::ModelDef model;
  model.name = "own";
  model.image = {1, 2, 2};
  model.build = [scores = std::move(scores)](graph::Graph& graph, const nn::BuildRequest& request) {
    const nn::Value images = nn::image_input(graph, request);
    return nn::classifier(images, scores(images));
  };
  return model;
}

nn::Value dense(nn::Value images) { return nn::dense(ops::flatten(images), "fc", 10); }

OnnxExport exported(const nn::ModelDef& model, int64_t batch = 0,
                    const std::map<std::string, std::string>& options = {}) {
  nn::BuildRequest request{.batch = 1, .image = model.image, .classes = model.classes, .options = options};
  graph::Graph graph;
  nn::build(graph, model, request);
  const std::vector<float> parameters(graph.parameter_count(), 0.5F);
  request.batch = batch;
  return export_onnx(model, request, parameters);
}

onnx::ModelProto read(const OnnxExport& file) {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(file.bytes));
  return model;
}

TEST(OnnxExport, SaysWhatIsInTheFile) {
  const OnnxExport open = exported(nn::find_model("lenet"));
  EXPECT_EQ(open.input, "images [batch, 1, 28, 28]");
  EXPECT_THAT(open.outputs, ElementsAre("scores [batch, 10]", "probabilities [batch, 10]"));
  EXPECT_EQ(open.parameters, 61706U);
  EXPECT_EQ(exported(nn::find_model("lenet"), 5).input, "images [5, 1, 28, 28]");
  EXPECT_THAT(exported(nn::find_model("autoencoder")).outputs, ElementsAre("output [batch, 784]"));
}

TEST(OnnxExport, BiasesBelongToTheirLayersAndLossesAreLeftOut) {
  const onnx::ModelProto file = read(exported(nn::find_model("lr")));
  std::vector<std::string> ops;
  for (const auto& node : file.graph().node()) ops.push_back(node.op_type());
  EXPECT_THAT(ops, ElementsAre("Constant", "Reshape", "Gemm", "Softmax"));
}

TEST(OnnxExport, ALossOverTheMeanOfTheBatchIsNoHindrance) {
  nn::ModelDef model = model_of(dense);
  model.build = [](graph::Graph& graph, const nn::BuildRequest& request) {
    const nn::Value images = nn::image_input(graph, request);
    nn::ModelGraph built;
    built.images = images;
    built.scores = dense(images);
    const float share = 1.0F / static_cast<float>(request.batch);
    built.loss = ops::scale(ops::reduce_sum(ops::square(built.scores)), share);
    return built;
  };
  EXPECT_EQ(exported(model).input, "images [batch, 1, 2, 2]");
}

TEST(OnnxExport, TheFileSaysThatItLacksTheDropoutOfTraining) {
  const auto left_out = [](const OnnxExport& file) {
    const onnx::ModelProto model = read(file);
    for (const auto& entry : model.metadata_props()) {
      if (entry.key() == "left_out") return entry.value();
    }
    return std::string();
  };
  EXPECT_EQ(left_out(exported(nn::find_model("lenet"))), "");
  EXPECT_EQ(left_out(exported(nn::find_model("autoencoder"), 0, {{"kind", "masking"}})), "dropout");
}

TEST(OnnxExport, ParametersThatInferenceDoesNotNeedAreLeftOut) {
  const OnnxExport file = exported(nn::find_model("autoencoder"), 0, {{"kind", "variational"}});
  EXPECT_EQ(file.parameters, 471584U - (784 * 200 + 200));
  const onnx::ModelProto model = read(file);
  for (const auto& tensor : model.graph().initializer()) EXPECT_THAT(tensor.name(), Not(HasSubstr("log_variance")));
}

TEST(OnnxExport, EveryOpThatInferenceUsesHasItsExporter) {
  using ops::Family;
  for (const ops::OpDef& def : ops::op_table()) {
    const bool elsewhere = def.op == graph::Op::input || def.op == graph::Op::parameter ||
                           def.family == Family::random || def.family == Family::backward ||
                           def.family == Family::internal;
    const bool needs_labels = def.family == Family::softmax && def.op != graph::Op::softmax;
    EXPECT_TRUE(elsewhere || needs_labels || find_exporter(def.op) != nullptr) << def.name;
  }
}

TEST(OnnxExport, AnOpThatFilesCannotHoldIsNamed) {
  const nn::ModelDef model = model_of([](nn::Value images) {
    return ops::add(dense(images), ops::random_normal(images.graph(), {images.shape()[0], 10}));
  });
  EXPECT_THAT(message_of<UsageError>([&] { (void)exported(model); }),
              AllOf(HasSubstr("node 'random_normal'"), HasSubstr("cannot hold")));
}

TEST(OnnxExport, AGraphThatDependsOnTheBatchNeedsAFixedOne) {
  const nn::ModelDef model = model_of(
      [](nn::Value images) { return ops::scale(dense(images), 1.0F / static_cast<float>(images.shape()[0])); });
  EXPECT_THAT(message_of<UsageError>([&] { (void)exported(model); }),
              AllOf(HasSubstr("'scale'"), HasSubstr("--batch")));
  EXPECT_EQ(exported(model, 4).outputs.front(), "scores [4, 10]");
}

TEST(OnnxExport, ParametersOfAnotherModelAreRefused) {
  const nn::ModelDef& model = nn::find_model("lr");
  const std::vector<float> few(10);
  EXPECT_THROW((void)export_onnx(model, {.batch = 0, .image = model.image, .options = {}}, few), UsageError);
}

}  // namespace
}  // namespace lockstep::interchange
