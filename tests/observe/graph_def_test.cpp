#include "observe/tensorboard/graph_def.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "lockstep/nn.h"
#include "lockstep/ops.h"

namespace lockstep::observe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Nodes = std::map<std::string, tensorboard::NodeDef>;

/// Returns the nodes by name; checks that names are unique.
Nodes nodes_of(const tensorboard::GraphDef& def) {
  Nodes nodes;
  for (const tensorboard::NodeDef& node : def.node()) {
    EXPECT_TRUE(nodes.emplace(node.name(), node).second) << node.name() << " is there twice";
  }
  return nodes;
}

void expect_inputs_exist(const Nodes& nodes) {
  for (const auto& [name, node] : nodes) {
    for (const std::string& input : node.input()) {
      const auto found = nodes.find(input.substr(0, input.find(':')));
      ASSERT_NE(found, nodes.end()) << name << " takes " << input;
      const size_t colon = input.find(':');
      const int output = colon == std::string::npos ? 0 : std::stoi(input.substr(colon + 1));
      EXPECT_LT(output, found->second.attr().at("_output_shapes").list().shape_size());
    }
  }
}

std::vector<int64_t> shape_of(const tensorboard::NodeDef& node) {
  std::vector<int64_t> dims;
  for (const auto& dim : node.attr().at("_output_shapes").list().shape(0).dim()) dims.push_back(dim.size());
  return dims;
}

void build(Graph& graph, const nn::ModelDef& model) {
  const auto built = nn::build(graph, model, {4, true, model.image, 10, nn::resolve_options(model, {})});
  ops::gradients(built.loss);
}

TEST(GraphDef, OfEveryModelIsWellFormed) {
  for (const nn::ModelDef& model : nn::zoo()) {
    Graph graph;
    build(graph, model);
    const tensorboard::GraphDef def = graph_def(graph, {"/job:worker/task:0", {}});
    ASSERT_EQ(static_cast<size_t>(def.node_size()), graph.nodes().size()) << model.name;
    expect_inputs_exist(nodes_of(def));
    for (int i = 0; i < def.node_size(); ++i) {
      EXPECT_EQ(graph.node(i).backward, def.node(i).name().starts_with("gradients/")) << def.node(i).name();
      EXPECT_EQ(graph.node(i).inputs.size(), static_cast<size_t>(def.node(i).input_size()));
    }
  }
}

TEST(GraphDef, SaysShapesTypesScopesAndDevices) {
  Graph graph;
  build(graph, nn::find_model("lenet"));
  const auto server = [](size_t parameter) { return parameter == 0 ? "/job:ps/task:0" : "/job:ps/task:1"; };
  const Nodes nodes = nodes_of(graph_def(graph, {"/job:worker/task:0/device:CPU:0", server}));
  const tensorboard::NodeDef& weights = nodes.at("conv1/weights");
  EXPECT_EQ(weights.op(), "parameter");
  EXPECT_EQ(weights.device(), "/job:ps/task:0");
  EXPECT_EQ(nodes.at("conv1/bias").device(), "/job:ps/task:1");
  EXPECT_THAT(shape_of(weights), ElementsAre(6, 1, 5, 5));
  EXPECT_EQ(weights.attr().at("dtype").type(), tensorboard::FLOAT);
  EXPECT_EQ(nodes.at("labels").attr().at("dtype").type(), tensorboard::INT32);
  const tensorboard::NodeDef& conv = nodes.at("conv1/conv2d");
  EXPECT_EQ(conv.device(), "/job:worker/task:0/device:CPU:0");
  EXPECT_THAT(conv.input(), ElementsAre("images", "conv1/weights"));
  EXPECT_THAT(shape_of(conv), ElementsAre(4, 6, 28, 28));
}

TEST(GraphDef, NamesThatTheFormatDoesNotAllowAreReplaced) {
  Graph graph;
  const TensorType type{DType::f32, {2}};
  const graph::Value a = graph.input("^x:0", type);
  const graph::Value b = graph.input("^x 0", type);
  const graph::Value c = graph.input("//q\xff//", type);
  const graph::Value d = graph.input("", type);
  ops::add(a, b);
  ops::add(c, d);
  const tensorboard::GraphDef def = graph_def(graph, {});
  expect_inputs_exist(nodes_of(def));
  EXPECT_EQ(def.node(0).name(), "n_x_0");
  EXPECT_EQ(def.node(1).name(), "n_x_0_1");
  EXPECT_EQ(def.node(2).name(), "q_");
  EXPECT_EQ(def.node(3).name(), "n");
  EXPECT_THAT(def.node(4).input(), ElementsAre("n_x_0", "n_x_0_1"));
}

}  // namespace
}  // namespace lockstep::observe
