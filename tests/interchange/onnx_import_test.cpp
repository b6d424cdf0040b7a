// ONNX files from other programs, and our own: imports give the same numbers, and refusals give the reason.
#include "interchange/onnx_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "base/temp_dir.h"
#include "interchange/model_file.h"
#include "interchange/model_outputs.h"
#include "interchange/onnx_export.h"
#include "interchange/onnx_files.h"
#include "interchange/onnx_reader.h"
#include "lockstep/error.h"
#include "lockstep/ops.h"

namespace lockstep::interchange {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::get_file;
using ::testing::HasSubstr;
using testing::message_of;
using testing::ModelRun;
using testing::OnnxMaker;
using testing::small_onnx;

std::string data(const std::string& name) {
  return std::string(std::getenv("LOCKSTEP_SOURCE")) + "/tests/interchange/data/" +
         name;  // NOLINT(concurrency-mt-unsafe)
}

nn::ModelDef parse(const OnnxMaker& maker) { return parse_onnx_model(maker.bytes(), "my.onnx"); }
std::string refusal(const OnnxMaker& maker) {
  return message_of<DataError>([&] { (void)parse(maker); });
}

/// Returns the largest difference, relative to the largest expected value.
double difference(const std::vector<float>& actual, const std::vector<float>& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double worst = 0;
  double largest = 0;
  for (size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(actual[i]) - expected[i]));
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
  }
  EXPECT_GT(largest, 0);
  return worst / largest;
}

nn::BuildRequest request_for(const nn::ModelDef& model, int64_t batch) {
  return {.batch = batch, .training = false, .image = model.image, .classes = model.classes, .options = {}};
}

std::vector<float> scores_of(const nn::ModelDef& model, int64_t batch = 3) {
  return ModelRun(model, request_for(model, batch), 0).scores();
}

class PyTorchFile : public ::testing::TestWithParam<const char*> {};

TEST_P(PyTorchFile, GivesItsLogits) {
  const nn::ModelDef model = load_model(data(std::string(GetParam()) + ".onnx"));
  EXPECT_EQ(model.image, (Shape{1, 28, 28}));
  EXPECT_EQ(model.classes, 10);
  EXPECT_EQ(model.name, GetParam());
  EXPECT_EQ(load_model(data(std::string(GetParam()) + ".onnx"), "folder/its name.onnx").name, "its-name");
  EXPECT_THAT(model.description, HasSubstr("pytorch"));
  ModelRun run(model, request_for(model, 2), 0);
  std::vector<float> images(size_t{2} * 784);
  for (size_t i = 0; i < images.size(); ++i) images[i] = static_cast<float>(i * 37 % 256) / 255.0F;
  run.set_images(images);
  const std::string bytes = get_file(data(std::string(GetParam()) + ".expected"));
  std::vector<float> expected(20);
  ASSERT_EQ(bytes.size(), expected.size() * sizeof(float));
  std::memcpy(expected.data(), bytes.data(), bytes.size());
  EXPECT_LT(difference(run.scores(), expected), 1e-5);
}
INSTANTIATE_TEST_SUITE_P(BothExporters, PyTorchFile, ::testing::Values("lenet", "small"));

TEST(OnnxImport, ParametersAreTheInitializersUnderTheirNames) {
  const nn::ModelDef model = load_model(data("lenet.onnx"));
  graph::Graph graph;
  const nn::ModelGraph built = nn::build(graph, model, request_for(model, 4));
  EXPECT_EQ(graph.parameter_count(), 61706U);
  std::vector<std::string> names;
  for (const auto& info : graph.parameters()) names.push_back(info.name);
  EXPECT_THAT(names, ElementsAre("conv1/weight", "conv1/bias", "conv2/weight", "conv2/bias", "fc1/weight", "fc1/bias",
                                 "fc2/weight", "fc2/bias", "fc3/weight", "fc3/bias"));
  EXPECT_EQ(graph.node(built.scores.id()).name, "fc3/bias_add") << "LogSoftmax is left to the loss";
  EXPECT_EQ(ops::gradients(built.loss).size(), 10U);
}

class RoundTrip : public ::testing::TestWithParam<std::string> {};

TEST_P(RoundTrip, AnExportedModelComesBackWithTheSameScores) {
  const nn::ModelDef& model = nn::find_model(GetParam());
  for (const int64_t batch : {int64_t{0}, int64_t{2}}) {
    nn::BuildRequest request = request_for(model, 3);
    const ModelRun original(model, request);
    request.batch = batch;
    const OnnxExport file = export_onnx(model, request, original.parameters());
    const nn::ModelDef again = parse_onnx_model(file.bytes, "again.onnx");
    EXPECT_EQ(again.image, model.image);
    const ModelRun imported(again, request_for(again, 3), 0);
    EXPECT_LT(difference(imported.scores(), original.scores()), 1e-5) << "exported for batch " << batch;
  }
}
INSTANTIATE_TEST_SUITE_P(ZooModels, RoundTrip, ::testing::Values("lr", "lenet", "lenet-valid", "autoencoder-large"));

TEST(OnnxImport, AFixedBatchIsReplaced) {
  OnnxMaker fixed;
  fixed.input("x", {1, 1, 2, 2}).output("y");
  fixed.weights("w", {4, 3});
  fixed.integers("shape", {1, -1});
  fixed.node("Reshape", {"x", "shape"}, "flat");
  fixed.node("MatMul", {"flat", "w"}, "y");
  OnnxMaker open = small_onnx();
  open.model.mutable_graph()->mutable_node(1)->mutable_input()->RemoveLast();
  EXPECT_EQ(scores_of(parse(fixed), 5), scores_of(parse(open), 5));
}

TEST(OnnxImport, DropoutIsThereInTrainingAlone) {
  OnnxMaker maker = small_onnx();
  maker.model.mutable_graph()->mutable_node(1)->set_input(0, "dropped");
  maker.node("Dropout", {"flat"}, "dropped");
  maker.model.mutable_graph()->mutable_node()->SwapElements(1, 2);
  const nn::ModelDef model = parse(maker);
  for (const bool training : {true, false}) {
    graph::Graph graph;
    nn::BuildRequest request = request_for(model, 2);
    request.training = training;
    nn::build(graph, model, request);
    const auto& nodes = graph.nodes();
    EXPECT_EQ(std::any_of(nodes.begin(), nodes.end(), [](const auto& node) { return node.op == graph::Op::dropout; }),
              training);
  }
}

TEST(OnnxImport, GemmFactorsAndTransposes) {
  OnnxMaker maker;
  maker.input("x", {-1, 1, 2, 2}).output("y");
  maker.weights("w", {3, 4});
  maker.weights("b", {1, 3});
  maker.node("Flatten", {"x"}, "flat");
  auto& gemm = maker.node("Gemm", {"flat", "w", "b"}, "y");
  OnnxMaker::integer(gemm, "transB", 1);
  for (const auto& [name, value] : {std::pair{"alpha", 2.0F}, std::pair{"beta", 0.5F}}) {
    auto& attribute = *gemm.add_attribute();
    attribute.set_name(name);
    attribute.set_f(value);
  }
  const nn::ModelDef model = parse(maker);
  const ModelRun run(model, request_for(model, 1), 0);
  std::vector<float> expected;
  for (size_t o = 0; o < 3; ++o) {
    double sum = 0;
    for (size_t i = 0; i < 4; ++i) sum += run.images()[i] * static_cast<double>((o * 4 + i) % 7) / 100.0;
    expected.push_back(static_cast<float>(2.0 * sum + 0.5 * static_cast<double>(o) / 100.0));
  }
  EXPECT_LT(difference(run.scores(), expected), 1e-6);
}

TEST(OnnxImport, OtherImagesAreRefusedWithBothShapes) {
  const nn::ModelDef model = load_model(data("lenet.onnx"));
  graph::Graph graph;
  nn::BuildRequest request = request_for(model, 2);
  request.image = {3, 32, 32};
  EXPECT_THAT(message_of<UsageError>([&] { nn::build(graph, model, request); }),
              AllOf(HasSubstr("[3, 32, 32]"), HasSubstr("[1, 28, 28]")));
}

TEST(OnnxImport, AnOpThatWeLackIsNamedWithItsNodeAndWhatThereIs) {
  OnnxMaker maker = small_onnx();
  maker.model.mutable_graph()->mutable_node(0)->set_op_type("BatchNormalization");
  EXPECT_THAT(refusal(maker), AllOf(HasSubstr("my.onnx"), HasSubstr("node 'flat_node' (BatchNormalization)"),
                                    HasSubstr("AveragePool, Cast, Concat, Conv")));
  maker.model.mutable_graph()->mutable_node(0)->set_domain("com.example");
  EXPECT_THAT(refusal(maker), HasSubstr("com.example"));
}

TEST(OnnxImport, TheDocsListTheSameOps) {
  std::string docs =
      get_file(std::string(std::getenv("LOCKSTEP_SOURCE")) + "/docs/onnx.md");  // NOLINT(concurrency-mt-unsafe)
  std::replace(docs.begin(), docs.end(), '\n', ' ');
  EXPECT_THAT(docs, HasSubstr("Operators: " + importable_ops() + "."));
}

TEST(OnnxImport, WhatNobodyNeedsIsNotRead) {
  OnnxMaker maker = small_onnx();
  maker.node("ArgMax", {"y"}, "label");
  maker.weights("unused", {2, 2});
  maker.output("label");
  graph::Graph graph;
  nn::build(graph, parse(maker), request_for(parse(maker), 2));
  EXPECT_EQ(graph.parameters().size(), 2U);
}

// Each error is one line.

TEST(OnnxImport, FilesThatAreNoneOrCutShort) {
  const std::string whole = get_file(data("lenet.onnx"));
  for (const std::string& bytes : {std::string(), std::string("not a model"), std::string(1000, '\xff'),
                                   whole.substr(0, 1), whole.substr(0, 1000), whole.substr(0, whole.size() - 1)}) {
    EXPECT_THAT(message_of<DataError>([&] { (void)parse_onnx_model(bytes, "my.onnx"); }), HasSubstr("my.onnx"));
  }
  EXPECT_THROW((void)load_model("/nowhere/my.onnx"), IoError);
}

TEST(OnnxImport, TensorsThatAreNotAsLargeAsTheyClaim) {
  OnnxMaker maker = small_onnx();
  auto& weights = *maker.model.mutable_graph()->mutable_initializer(0);
  weights.set_raw_data("12345678");
  EXPECT_THAT(refusal(maker), AllOf(HasSubstr("'fc.weight' [4, 3] takes 48 bytes"), HasSubstr("has 8")));
  weights.clear_raw_data();
  weights.mutable_float_data()->RemoveLast();
  EXPECT_THAT(refusal(maker), AllOf(HasSubstr("takes 12 elements"), HasSubstr("has 11")));
  weights.set_dims(0, -4);
  EXPECT_THAT(refusal(maker), HasSubstr("has invalid sizes [-4, 3]"));
  weights.set_dims(0, int64_t{1} << 62);
  EXPECT_THAT(refusal(maker), HasSubstr("has invalid sizes"));
  weights.set_dims(0, int64_t{1} << 33);
  EXPECT_THAT(refusal(maker), HasSubstr("has 11")) << "nothing of that size is allocated";
}

TEST(OnnxImport, WeightsOfOtherTypesOrPlaces) {
  OnnxMaker maker = small_onnx();
  auto& weights = *maker.model.mutable_graph()->mutable_initializer(0);
  weights.clear_float_data();
  weights.set_raw_data(std::string(96, '\0'));
  weights.set_data_type(onnx::TensorProto::DOUBLE);
  EXPECT_THAT(refusal(maker), AllOf(HasSubstr("'fc.weight' is float64"), HasSubstr("float32")));
  weights.set_data_type(onnx::TensorProto::FLOAT16);
  EXPECT_THAT(refusal(maker), HasSubstr("'fc.weight' is float16"));
  weights.set_data_type(onnx::TensorProto::FLOAT);
  weights.set_data_location(onnx::TensorProto::EXTERNAL);
  EXPECT_THAT(refusal(maker), AllOf(HasSubstr("lies in another file"), HasSubstr("external_data=False")));
}

TEST(OnnxImport, NodesOutOfOrderCyclesAndMissingInputs) {
  OnnxMaker swapped = small_onnx();
  swapped.model.mutable_graph()->mutable_node()->SwapElements(0, 1);
  EXPECT_THAT(refusal(swapped), AllOf(HasSubstr("node 'y_node' (Gemm) reads 'flat'"), HasSubstr("in order")));
  OnnxMaker cycle = small_onnx();
  cycle.model.mutable_graph()->mutable_node(0)->set_input(0, "y");
  EXPECT_THAT(refusal(cycle), HasSubstr("without cycles"));
  OnnxMaker missing = small_onnx();
  missing.model.mutable_graph()->mutable_node(1)->set_input(1, "nothing");
  EXPECT_THAT(refusal(missing), HasSubstr("reads 'nothing', which is neither an input"));
  OnnxMaker empty = small_onnx();
  empty.model.mutable_graph()->mutable_node(1)->mutable_input()->DeleteSubrange(1, 2);
  EXPECT_THAT(refusal(empty), HasSubstr("its input 1 is missing"));
  OnnxMaker twice = small_onnx();
  twice.node("Relu", {"x"}, "flat");
  EXPECT_THAT(refusal(twice), HasSubstr("makes 'flat'"));
}

TEST(OnnxImport, InputsAndOutputsThatAreNotOne) {
  OnnxMaker two = small_onnx();
  two.input("second", {-1, 3});
  EXPECT_THAT(refusal(two), AllOf(HasSubstr("several inputs"), HasSubstr("'second'")));
  OnnxMaker none = small_onnx();
  none.model.mutable_graph()->clear_input();
  EXPECT_THAT(refusal(none), HasSubstr("no input"));
  OnnxMaker without_output = small_onnx();
  without_output.model.mutable_graph()->clear_output();
  EXPECT_THAT(refusal(without_output), HasSubstr("no output"));
  OnnxMaker open = small_onnx();
  open.model.mutable_graph()->clear_input();
  open.input("x", {-1, 1, -1, 2});
  EXPECT_THAT(refusal(open), HasSubstr("'x' [n, 1, n, 2] must have fixed sizes"));
  OnnxMaker old = small_onnx();
  old.model.mutable_opset_import(0)->set_version(6);
  EXPECT_THAT(refusal(old), HasSubstr("operator set is 6"));
}

/// x [n, 1, 8, 8] through one node over images to three classes.
OnnxMaker image_op(const std::string& op, const testing::Names& inputs) {
  OnnxMaker maker;
  maker.input("x", {-1, 1, 8, 8}).output("y");
  maker.weights("conv.weight", {2, 1, 3, 3});
  maker.node(op, inputs, "z");
  maker.node("Flatten", {"z"}, "y");
  return maker;
}
onnx::NodeProto& first_node(OnnxMaker& maker) { return *maker.model.mutable_graph()->mutable_node(0); }

TEST(OnnxImport, WindowsThatWeLack) {
  const auto conv = [] { return image_op("Conv", {"x", "conv.weight"}); };
  OnnxMaker maker = conv();
  OnnxMaker::ints(first_node(maker), "dilations", {2, 2});
  EXPECT_THAT(refusal(maker), AllOf(HasSubstr("node 'z_node' (Conv)"), HasSubstr("dilations")));
  maker = conv();
  OnnxMaker::integer(first_node(maker), "group", 2);
  EXPECT_THAT(refusal(maker), HasSubstr("group 2 cannot be imported"));
  maker = conv();
  OnnxMaker::ints(first_node(maker), "pads", {1, 1});
  EXPECT_THAT(refusal(maker), HasSubstr("pads [1, 1] has 2 values; images have 4 (top, left, bottom, right)"));
  maker = conv();
  OnnxMaker::ints(first_node(maker), "pads", {-1, 0, 0, 0});
  EXPECT_THAT(refusal(maker), HasSubstr("pads [-1, 0, 0, 0] cannot be imported; 0 to 1048576 is allowed"));
  maker = conv();
  OnnxMaker::text(first_node(maker), "auto_pad", "SOME");
  EXPECT_THAT(refusal(maker), HasSubstr("auto_pad 'SOME' is unknown; NOTSET, VALID"));
  maker = image_op("MaxPool", {"x"});
  OnnxMaker::ints(first_node(maker), "kernel_shape", {3, 3});
  OnnxMaker::ints(first_node(maker), "strides", {2, 2});
  OnnxMaker::integer(first_node(maker), "ceil_mode", 1);
  EXPECT_THAT(refusal(maker), HasSubstr("ceil_mode 1 cannot be imported"));
  maker = image_op("AveragePool", {"x"});
  OnnxMaker::ints(first_node(maker), "kernel_shape", {2, 2});
  OnnxMaker::ints(first_node(maker), "pads", {1, 1, 0, 0});
  OnnxMaker::integer(first_node(maker), "count_include_pad", 1);
  EXPECT_THAT(refusal(maker), HasSubstr("count_include_pad 1"));
  maker = image_op("MaxPool", {"x"});
  OnnxMaker::ints(first_node(maker), "kernel_shape", {2, 2});
  OnnxMaker::ints(first_node(maker), "pads", {2, 0, 0, 0});
  EXPECT_THAT(refusal(maker), HasSubstr("pads [2, 0, 0, 0] (top, left, bottom, right) must be smaller than the window "
                                        "[2, 2]"));
  maker = image_op("LRN", {"x"});
  OnnxMaker::integer(first_node(maker), "size", 4);
  EXPECT_THAT(refusal(maker), HasSubstr("size 4 cannot be imported: a channel is normalised with as many"));
}

TEST(OnnxImport, SaysIfDropoutIsMissing) {
  OnnxMaker maker = image_op("Relu", {"x"});
  maker.model.set_producer_name("pytorch");
  EXPECT_THAT(parse(maker).description, HasSubstr("made by pytorch; it has no dropout, which exports for inference"));
  maker = image_op("Dropout", {"x"});
  maker.model.set_producer_name("pytorch");
  EXPECT_EQ(parse(maker).description, "an ONNX file made by pytorch");
}

TEST(OnnxImport, SamePaddingAddsMoreAtTheEndsThatItSays) {
  const auto with = [](const std::string& automatic, const testing::Dims& pads) {
    OnnxMaker maker = image_op("Conv", {"x", "conv.weight"});
    OnnxMaker::ints(first_node(maker), "strides", {2, 2});
    if (!automatic.empty()) OnnxMaker::text(first_node(maker), "auto_pad", automatic);
    if (!pads.empty()) OnnxMaker::ints(first_node(maker), "pads", pads);
    return scores_of(parse(maker));
  };
  EXPECT_EQ(with("SAME_UPPER", {}), with("", {0, 0, 1, 1}));
  EXPECT_EQ(with("SAME_LOWER", {}), with("", {1, 1, 0, 0}));
  EXPECT_EQ(with("VALID", {}), with("", {}));
}

TEST(OnnxImport, HugeSizesAreRefused) {
  OnnxMaker maker = small_onnx();
  maker.integers("huge", {int64_t{1} << 40, int64_t{1} << 40});
  maker.node("Expand", {"y", "huge"}, "z");
  maker.model.mutable_graph()->mutable_output(0)->set_name("z");
  EXPECT_THAT(refusal(maker), HasSubstr("has invalid sizes [1099511627776, 1099511627776]"));
  OnnxMaker outer;
  outer.input("x", {-1, 1, 1, 1 << 20}).output("y");
  outer.integers("column", {-1, 1});
  outer.integers("row", {1, -1});
  outer.node("Reshape", {"x", "column"}, "a");
  outer.node("Reshape", {"x", "row"}, "b");
  outer.node("MatMul", {"a", "b"}, "y");
  EXPECT_THAT(refusal(outer), AllOf(HasSubstr("node 'y_node' (MatMul)"), HasSubstr("GB")));
}

TEST(OnnxImport, IntegersAreFoldedAndCheckedOnTheWay) {
  OnnxMaker maker = small_onnx();
  maker.integers("zero", {0});
  maker.integers("minus", {-1});
  maker.node("Shape", {"x"}, "shape");
  maker.node("Gather", {"shape", "zero"}, "n");
  maker.node("Concat", {"n", "minus"}, "dims");
  maker.node("Reshape", {"y", "dims"}, "z");
  maker.model.mutable_graph()->mutable_output(0)->set_name("z");
  EXPECT_EQ(scores_of(parse(maker)), scores_of(parse(small_onnx())));
  OnnxMaker outside = maker;
  outside.model.mutable_graph()->mutable_initializer(2)->set_int64_data(0, 9);
  EXPECT_THAT(refusal(outside), HasSubstr("index 9 is outside 4 integers"));
  OnnxMaker data_dependent = maker;
  data_dependent.model.mutable_graph()->mutable_node(5)->set_input(1, "x");
  EXPECT_THAT(refusal(data_dependent), HasSubstr("must be integers computed from shapes"));
  OnnxMaker division = small_onnx();
  division.integers("zero", {0, 0});
  division.node("Div", {"zero", "zero"}, "dims");
  division.node("Reshape", {"y", "dims"}, "z");
  division.model.mutable_graph()->mutable_output(0)->set_name("z");
  EXPECT_THAT(refusal(division), HasSubstr("divide by zero"));
}

}  // namespace
}  // namespace lockstep::interchange
