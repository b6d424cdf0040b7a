#include "program/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "backend/cpu/cpu_backend.h"
#include "backend/null/null_backend.h"
#include "lockstep/nn.h"
#include "lockstep/ops.h"
#include "program/program.h"

namespace lockstep::graph {
namespace {

int count(const Graph& graph, Op op) {
  const auto& nodes = graph.nodes();
  return static_cast<int>(std::count_if(nodes.begin(), nodes.end(), [&](const Node& node) { return node.op == op; }));
}

program::Work work_of(Graph& g, const std::vector<Value>& outputs, const std::vector<Value>& gradients = {}) {
  program::Work work{g, {}, {}};
  for (const Value& v : outputs) work.outputs.push_back(v.id());
  for (const Value& v : gradients) work.gradients.push_back(v.id());
  return work;
}

struct Network {
  Graph graph;
  nn::ModelGraph model;
  std::vector<Value> gradients;
};

Network lenet(int64_t batch) {
  Network n;
  n.model = nn::build(n.graph, nn::find_model("lenet"), {batch, true, {1, 28, 28}, 10, {}});
  n.gradients = ops::gradients(n.model.loss);
  return n;
}

TEST(Names, ScopesNestAndRepeatsAreNumbered) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {2, 2}});
  {
    const Scope outer(g, "block");
    const Scope inner(g, "conv");
    EXPECT_EQ(ops::relu(x).name(), "block/conv/relu");
    EXPECT_EQ(ops::relu(x).name(), "block/conv/relu_1");
  }
  EXPECT_EQ(ops::relu(x).name(), "relu");
}

TEST(DeadNodes, AreRemovedAndInputsStay) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {4}});
  g.input("unused", {DType::f32, {4}});
  const Value y = ops::relu(x);
  ops::exp(ops::tanh(x));
  const program::Work after = program::remove_dead_nodes(work_of(g, {y}));
  EXPECT_EQ(after.graph.nodes().size(), 3U);
  EXPECT_EQ(count(after.graph, Op::input), 2);
}

TEST(CommonSubexpressions, AreComputedOnce) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {4}});
  const Value y = ops::add(ops::exp(ops::scale(x, 2)), ops::exp(ops::scale(x, 2)));
  const Value z = ops::scale(x, 3);
  const program::Work after = program::merge_common_subexpressions(work_of(g, {y, z}));
  const program::Work lean = program::remove_dead_nodes(after);
  EXPECT_EQ(count(lean.graph, Op::exp), 1);
  EXPECT_EQ(count(lean.graph, Op::scale), 2) << "scales by different factors are different";
}

TEST(CommonSubexpressions, RandomOpsStayApart) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {4, 4}});
  const Value y = ops::add(ops::dropout(x, 0.5F), ops::dropout(x, 0.5F));
  EXPECT_EQ(count(program::merge_common_subexpressions(work_of(g, {y})).graph, Op::dropout), 2);
}

TEST(Constants, HalfASumOfSquaresHasAGradientWithoutArithmetic) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {4, 6}});
  const Value loss = ops::scale(ops::reduce_sum(ops::square(x)), 0.5F);
  const std::vector<Value> dx = ops::gradients(loss, std::vector<Value>{x});
  const program::Work after = program::simplify(work_of(g, {loss, dx[0]}));
  EXPECT_EQ(after.graph.node(after.outputs[1]).op, Op::input);
}

TEST(Constants, AProductWithOneStaysWhereItsShapeGrows) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {1, 6}});
  const Value grown = ops::mul(ops::constant(g, {4, 6}, 3.0F), x);
  const Value scaled = ops::scale(ops::mul(x, ops::constant(g, {}, 3.0F)), 2.0F);
  const program::Work after = program::remove_dead_nodes(program::simplify(work_of(g, {grown, scaled})));
  EXPECT_EQ(after.graph.node(after.outputs[0]).op, Op::mul);
  ASSERT_EQ(after.graph.node(after.outputs[1]).op, Op::scale);
  EXPECT_EQ(after.graph.node(after.outputs[1]).as<ScalarAttrs>().value, 6.0F);
  EXPECT_EQ(count(after.graph, Op::scale), 1);
}

TEST(Fusion, BiasAndActivationJoinTheProduct) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {8, 4}});
  const Value y = ops::relu(nn::dense(x, "fc", 5));
  const program::Work after = program::remove_dead_nodes(program::fuse(work_of(g, {y})));
  EXPECT_EQ(count(after.graph, Op::bias_add), 0);
  EXPECT_EQ(count(after.graph, Op::relu), 0);
  const Node& product = after.graph.node(after.outputs[0]);
  EXPECT_EQ(product.op, Op::matmul);
  EXPECT_TRUE(product.as<MatMulAttrs>().bias);
  EXPECT_EQ(product.as<MatMulAttrs>().activation, Activation::relu);
}

TEST(Fusion, LeavesAResultThatSomebodyElseNeeds) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {8, 4}});
  const Value before = nn::dense(x, "fc", 5);
  const program::Work after = program::fuse(work_of(g, {before, ops::relu(before)}));
  EXPECT_EQ(count(after.graph, Op::relu), 1);
}

TEST(Fusion, SoftmaxJoinsCrossEntropyInBothDirections) {
  Graph g;
  const Value logits = g.parameter("logits", {8, 4}, Initializer::zeros());
  const Value labels = g.input("labels", {DType::i32, {8}});
  const Value loss = ops::reduce_mean(ops::cross_entropy(ops::softmax(logits), labels));
  const auto gradients = ops::gradients(loss);
  const program::Work after = program::remove_dead_nodes(program::fuse(work_of(g, {loss}, gradients)));
  EXPECT_EQ(count(after.graph, Op::softmax_cross_entropy), 1);
  EXPECT_EQ(count(after.graph, Op::softmax_cross_entropy_grad), 1);
  for (const Op gone : {Op::softmax, Op::softmax_grad, Op::cross_entropy, Op::cross_entropy_grad}) {
    EXPECT_EQ(count(after.graph, gone), 0);
  }
}

TEST(Fusion, LeNetKeepsOnlyWhatItMust) {
  Network n = lenet(8);
  const program::Work after = program::remove_dead_nodes(program::fuse(work_of(n.graph, {n.model.loss}, n.gradients)));
  for (const Op gone : {Op::bias_add, Op::relu, Op::softmax}) EXPECT_EQ(count(after.graph, gone), 0);
  EXPECT_EQ(count(after.graph, Op::bias_grad), 3) << "those of the dense layers; the convolutions' are fused";
  EXPECT_EQ(count(after.graph, Op::relu_grad), 2) << "those of the dense layers; the pools' are fused";
  EXPECT_EQ(count(after.graph, Op::conv2d_grad_input), 1) << "the first layer's input needs no gradient";
}

TEST(Fusion, DropoutOfAReluKeepsOneTensorAndOneMask) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {4, 6}});
  const Value z = ops::dropout(ops::relu(x), 0.5F);
  const Value loss = ops::reduce_sum(ops::square(z));
  const std::vector<Value> dx = ops::gradients(loss, std::vector<Value>{x});
  const program::Work after = program::remove_dead_nodes(program::fuse(work_of(g, {loss, dx[0]})));
  EXPECT_EQ(count(after.graph, Op::dropout), 1);
  const auto& nodes = after.graph.nodes();
  const auto relu_grad =
      std::find_if(nodes.begin(), nodes.end(), [](const Node& node) { return node.op == Op::relu_grad; });
  ASSERT_NE(relu_grad, nodes.end());
  EXPECT_EQ(after.graph.node(relu_grad->inputs[0]).op, Op::dropout);
}

TEST(Fusion, ABiasGradientThatOthersNeedStaysWhole) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {2, 1, 6, 6}});
  const Value q = g.input("q", {DType::f32, {2, 3, 4, 4}});
  const Value w = g.parameter("w", {3, 1, 3, 3}, Initializer::normal(1));
  const Value b = g.parameter("b", {3}, Initializer::normal(1));
  const Value biased = ops::bias_add(q, b);  // before the convolution, so that its gradient comes after
  const Value z = ops::add(biased, ops::conv2d(x, w, ops::window(3)));
  const Value loss = ops::add(ops::reduce_sum(ops::square(z)), ops::reduce_sum(ops::square(b)));
  const auto gradients = ops::gradients(loss);
  const program::Work after = program::remove_dead_nodes(program::fuse(work_of(g, {loss}, gradients)));
  for (const ValueId id : after.gradients) EXPECT_TRUE(id.valid());
  EXPECT_EQ(count(after.graph, Op::bias_grad), 1);
}

TEST(Names, StayUniqueThroughThePasses) {
  Network n = lenet(8);
  const auto backend = backend::make_cpu_backend({.threads = 1, .reference_only = false});
  const program::Work after = program::optimize(work_of(n.graph, {n.model.loss}, n.gradients), *backend);
  std::set<std::string> names;
  for (const Node& node : after.graph.nodes()) EXPECT_TRUE(names.insert(node.name).second) << node.name;
}

TEST(Layouts, LeNetRunsBatchBlockedWithOneReorderEachWay) {
  Network n = lenet(64);
  const auto backend = backend::make_cpu_backend({.threads = 1, .reference_only = false});
  const program::Work after = program::optimize(work_of(n.graph, {n.model.loss}, n.gradients), *backend);
  EXPECT_EQ(count(after.graph, Op::reorder), 3) << "images in, features out, their gradient in";
  for (const Node& node : after.graph.nodes()) {
    if (node.op == Op::conv2d) {
      EXPECT_EQ(node.outputs[0].layout.kind, Layout::Kind::batch_blocked);
    }
  }
}

TEST(Layouts, WideConvolutionsGoToOneDnnsBlocks) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {8, 64, 10, 10}});
  const Value y = ops::max_pool(nn::conv(x, "conv", 96, 3, 1, 1), ops::window(2, 2));
  const auto backend = backend::make_cpu_backend({.threads = 1, .reference_only = false});
  const program::Program program(g, {y}, {}, *backend);
  bool seen = false;
  for (const program::KernelInfo& kernel : program.kernels()) {
    if (kernel.op != Op::conv2d) continue;
    seen = true;
    EXPECT_EQ(kernel.layout.kind, Layout::Kind::channel_blocked);
    EXPECT_THAT(kernel.implementation, testing::AnyOf(testing::StartsWith("onednn "), "winograd"));
  }
  EXPECT_TRUE(seen);
}

TEST(Layouts, ExactConvolutionsAreNotWinograds) {
  const auto implementations = [](bool exact) {
    Graph g;
    const Value x = g.input("x", {DType::f32, {8, 64, 16, 16}});
    const Value loss = ops::reduce_sum(nn::conv(ops::relu(nn::conv(x, "conv1", 64, 3, 1, 1)), "conv2", 64, 3, 1, 1));
    const auto backend = backend::make_cpu_backend({.threads = 1, .exact_conv = exact});
    std::string all;
    const auto gradients = ops::gradients(loss);
    const program::Program program(std::move(g), {loss}, gradients, *backend);
    for (const program::KernelInfo& kernel : program.kernels()) {
      if (kernel.name.find("conv2d") != std::string::npos) all += kernel.implementation + "\n";
    }
    return all;
  };
  EXPECT_THAT(implementations(true), testing::Not(testing::HasSubstr("winograd")));
  EXPECT_THAT(implementations(true), testing::HasSubstr("onednn jit"));
  EXPECT_THAT(implementations(false),
              testing::AllOf(testing::HasSubstr("winograd"), testing::Not(testing::HasSubstr("onednn jit:avx"))));
}

TEST(Gradients, EachIsWrittenByANodeOfItsOwn) {
  Graph g;
  const Value a = g.parameter("a", {3}, Initializer::zeros());
  const Value b = g.parameter("b", {3}, Initializer::zeros());
  const Value loss = ops::reduce_sum(ops::add(a, b));  // both gradients are the same constant
  const auto gradients = ops::gradients(loss);
  const auto backend = backend::make_null_backend();
  const program::Work after = program::optimize(work_of(g, {loss}, gradients), *backend);
  EXPECT_NE(after.gradients[0], after.gradients[1]);
  for (const ValueId id : after.gradients) EXPECT_EQ(after.graph.node(id).op, Op::identity);
}

}  // namespace
}  // namespace lockstep::graph
