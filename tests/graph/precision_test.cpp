// The precision pass, on a backend of the test's own (independent of the CPU), and the choices of the CPU backend on
// CPUs with bfloat16.
#include <gtest/gtest.h>

#include <algorithm>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "backend/null/null_backend.h"
#include "lockstep/error.h"
#include "lockstep/nn.h"
#include "lockstep/ops.h"
#include "program/passes.h"
#include "program/program.h"

namespace lockstep::graph {
namespace {

/// A backend that wants bfloat16 factors and float32 results of products, bfloat16 tanh, and blocked images for pools.
class Mixed final : public backend::Backend {
 public:
  [[nodiscard]] std::string_view name() const override { return "mixed"; }
  [[nodiscard]] backend::NamedKernel make(const backend::KernelRequest& request) const override {
    return backend::make_null_backend()->make(request);
  }
  [[nodiscard]] std::optional<backend::PrecisionChoice> precisions(
      const backend::KernelRequest& request) const override {
    if (request.node.op == Op::matmul) return {{{DType::bf16, DType::bf16}, {DType::f32}}};
    if (request.node.op == Op::tanh) return {{{DType::bf16}, {DType::bf16}}};
    return std::nullopt;
  }
  [[nodiscard]] std::optional<backend::LayoutChoice> layouts(const backend::KernelRequest& request) const override {
    const Layout blocked{Layout::Kind::channel_blocked, 16};
    if (request.node.op == Op::max_pool) return {{{blocked}, {blocked}}};
    return std::nullopt;
  }
};

program::Work work_of(const Graph& g, const std::vector<Value>& outputs, const std::vector<Value>& gradients = {}) {
  program::Work work{g, {}, {}};
  for (const Value& v : outputs) work.outputs.push_back(v.id());
  for (const Value& v : gradients) work.gradients.push_back(v.id());
  return work;
}

std::vector<Node> casts(const Graph& graph) {
  std::vector<Node> found;
  for (const Node& node : graph.nodes()) {
    if (node.op == Op::reorder && graph.output(node.inputs[0]).type.dtype != node.outputs[0].type.dtype) {
      found.push_back(node);
    }
  }
  return found;
}

TEST(Precision, ABackendWithoutOpinionChangesNothing) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {4, 8}});
  const Value labels = g.input("labels", {DType::i32, {4}});
  const Value loss = ops::reduce_mean(ops::softmax_cross_entropy(nn::dense(x, "fc", 5), labels));
  const program::Work before = work_of(g, {loss}, ops::gradients(loss));
  const program::Work after = program::assign_precision(before, *backend::make_null_backend());
  EXPECT_EQ(after.graph.nodes().size(), before.graph.nodes().size());
  EXPECT_TRUE(casts(after.graph).empty());
}

TEST(Precision, AValueIsCastOnceForAllWhoWantIt) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {4, 8}});
  const Value a = ops::matmul(x, g.parameter("a", {8, 3}, Initializer::normal(1)));
  const Value b = ops::matmul(x, g.parameter("b", {8, 5}, Initializer::normal(1)));
  const program::Work after = program::assign_precision(work_of(g, {a, b}), Mixed());
  EXPECT_EQ(casts(after.graph).size(), 3U) << "x, and the two parameters";
}

TEST(Precision, WhatTheCallerSeesKeepsTheTypeItWasBuiltIn) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {4, 8}});
  const Value w = g.parameter("w", {8, 8}, Initializer::normal(1));
  const Value y = ops::tanh(ops::matmul(x, w));
  const auto gradients = ops::gradients(ops::reduce_sum(y));
  const program::Work after = program::optimize(work_of(g, {y}, gradients), Mixed());
  EXPECT_EQ(after.graph.output(after.outputs[0]).type.dtype, DType::f32);
  EXPECT_EQ(after.graph.output(after.gradients[0]).type.dtype, DType::f32);
  for (const Node& node : after.graph.nodes()) {
    if (node.op != Op::parameter) continue;
    EXPECT_EQ(node.outputs[0].type.dtype, DType::f32);
  }
}

TEST(Precision, ACastAndAChangeOfLayoutAreOneReorder) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {2, 32, 4, 4}});
  const Value y = ops::max_pool(ops::tanh(x), ops::window(2, 2));
  const program::Work after = program::optimize(work_of(g, {y}), Mixed());
  const auto found = casts(after.graph);
  ASSERT_EQ(found.size(), 2U) << "into tanh, and out of it";
  EXPECT_EQ(found[1].outputs[0].type.dtype, DType::f32);
  EXPECT_EQ(found[1].outputs[0].layout.kind, Layout::Kind::channel_blocked);
  const auto& nodes = after.graph.nodes();
  const auto reorders = std::count_if(nodes.begin(), nodes.end(), [](const Node& n) { return n.op == Op::reorder; });
  EXPECT_EQ(reorders, 3) << "the third makes the result plain";
}

TEST(Precision, NarrowValuesTakeHalfTheMemory) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {64, 1024}});
  const Value y = ops::reduce_sum(ops::tanh(ops::tanh(ops::tanh(x))));
  const program::Program wide(g, {y}, {}, *backend::make_null_backend());
  const program::Program narrow(g, {y}, {}, Mixed());
  constexpr size_t kFloats = 64UL * 1024 * 4;
  EXPECT_LT(wide.memory().arena_bytes, kFloats + 4096);
  EXPECT_GE(wide.memory().arena_bytes, kFloats);
  EXPECT_LT(narrow.memory().arena_bytes, kFloats / 2 + kFloats + 4096) << "the last is cast back for the sum";
  EXPECT_EQ(narrow.memory().unshared_bytes / 1024, (kFloats / 2 * 4 + kFloats) / 1024);
}

/// Two wide convolutions, a pool and a large product: a small AlexNet.
struct Network {
  Graph graph;
  Value loss;
  std::vector<Value> gradients;
};

Network wide_network(int64_t batch = 32) {
  Network n;
  const Value x = n.graph.input("x", {DType::f32, {batch, 3, 16, 16}});
  const Value labels = n.graph.input("labels", {DType::i32, {batch}});
  Value y = ops::relu(nn::conv(x, "conv1", 64, 5, 1, 2));
  y = ops::max_pool(y, ops::window(3, 2));
  y = ops::relu(nn::conv(y, "conv2", 64, 3, 1, 1));
  y = ops::relu(nn::conv(y, "conv3", 64, 3, 1, 1));
  y = ops::relu(nn::dense(ops::flatten(y), "wide", 1024));
  n.loss = ops::reduce_mean(ops::softmax_cross_entropy(nn::dense(y, "scores", 10), labels));
  n.gradients = ops::gradients(n.loss);
  return n;
}

class CpuPrecision : public testing::Test {
 protected:
  void SetUp() override {
    backend::cpu::limit_isa_from_environment();
    if (!backend::cpu::has_avx512_bf16()) GTEST_SKIP() << "this CPU has no AVX512_BF16";
  }
};

TEST_F(CpuPrecision, ConvolutionsAndWhatLiesBetweenThemAreNarrow) {
  const Network n = wide_network();
  const auto backend = backend::make_cpu_backend({.threads = 1, .bf16 = true});
  const program::Program program(n.graph, {n.loss}, n.gradients, *backend);
  const auto& nodes = program.graph().nodes();
  for (const Node& node : nodes) {
    const DType type = node.outputs[0].type.dtype;
    const DType first = node.inputs.empty() ? type : program.graph().output(node.inputs[0]).type.dtype;
    switch (node.op) {
      case Op::conv2d:
      case Op::conv2d_grad_input:
      case Op::max_pool:
      case Op::max_pool_grad:
        EXPECT_EQ(type, DType::bf16) << node.name;
        EXPECT_EQ(first, DType::bf16) << node.name;
        break;
      case Op::conv2d_grad_weights:
        EXPECT_EQ(type, DType::f32) << node.name;
        EXPECT_EQ(first, DType::bf16) << node.name;
        break;
      case Op::softmax_cross_entropy:
      case Op::bias_grad:
        EXPECT_EQ(first, DType::f32) << node.name;
        break;
      default:
        break;
    }
  }
  const auto narrow_product = std::count_if(nodes.begin(), nodes.end(), [&](const Node& node) {
    return node.op == Op::matmul && program.graph().output(node.inputs[0]).type.dtype == DType::bf16;
  });
  EXPECT_EQ(narrow_product, 3) << "the wide layer forward and its two gradients; the small one stays float32";
}

/// A narrow float32 convolution before a wide one, with all changes of layout and type between them.
Network narrow_then_wide() {
  Network n;
  const Value x = n.graph.input("x", {DType::f32, {16, 1, 20, 20}});
  const Value labels = n.graph.input("labels", {DType::i32, {16}});
  Value y = ops::max_pool(ops::relu(nn::conv(x, "narrow", 16, 3, 1, 1)), ops::window(2, 2));
  y = ops::max_pool(ops::relu(nn::conv(y, "wide", 32, 3, 1, 1)), ops::window(2, 2));
  n.loss = ops::reduce_mean(ops::softmax_cross_entropy(nn::dense(ops::flatten(y), "scores", 10), labels));
  n.gradients = ops::gradients(n.loss);
  return n;
}

TEST_F(CpuPrecision, NoReferenceKernelIsUsed) {
  for (const bool last : {false, true}) {
    const auto backend = backend::make_cpu_backend({.threads = 1, .bf16 = true, .channels_last = last});
    for (const Network& n : {wide_network(), narrow_then_wide()}) {
      const program::Program program(n.graph, {n.loss}, n.gradients, *backend);
      for (const program::KernelInfo& kernel : program.kernels()) {
        EXPECT_EQ(kernel.implementation.find("ref"), std::string::npos) << kernel.name << ": " << kernel.implementation;
      }
    }
  }
}

TEST_F(CpuPrecision, ChannelsLastFromTheImagesToTheLastPool) {
  const Network n = wide_network();
  const auto backend = backend::make_cpu_backend({.threads = 1, .bf16 = true, .channels_last = true});
  const program::Program program(n.graph, {n.loss}, n.gradients, *backend);
  int images = 0;
  int reorders = 0;
  for (const Node& node : program.graph().nodes()) {
    const Output& output = node.outputs[0];
    if (output.type.dtype != DType::bf16 || output.type.shape.rank() != 4) continue;
    ++images;
    reorders += node.op == Op::reorder ? 1 : 0;
    if (output.layout.plain()) continue;
    EXPECT_EQ(output.layout.block, output.type.shape[1]) << node.name;
  }
  EXPECT_GE(images, 9);
  EXPECT_LE(reorders, 3) << "the images, the last convolution's result, and its gradient";
}

TEST_F(CpuPrecision, ChannelsThatFillNoBlocksStayInBlocks) {
  Graph g;
  const Value x = g.input("x", {DType::f32, {4, 40, 9, 9}});
  const Value y = ops::conv2d(x, g.parameter("w", {64, 40, 3, 3}, Initializer::normal(1)), ops::window(3, 1, 1));
  const auto backend = backend::make_cpu_backend({.threads = 1, .bf16 = true, .channels_last = true});
  const program::Program program(g, {y}, {}, *backend);
  for (const program::KernelInfo& kernel : program.kernels()) EXPECT_LE(kernel.layout.block, 16) << kernel.name;
}

TEST_F(CpuPrecision, ActivationsTakeLessMemoryThanInFloat32) {
  const Network n =
      wide_network(256);  // large enough for activations to outweigh the copy of the wide layer's parameters
  const auto narrow = backend::make_cpu_backend({.threads = 1, .bf16 = true});
  const auto wide = backend::make_cpu_backend({.threads = 1});
  const program::Program a(n.graph, {n.loss}, n.gradients, *narrow);
  const program::Program b(n.graph, {n.loss}, n.gradients, *wide);
  EXPECT_LT(a.memory().arena_bytes, b.memory().arena_bytes);
}

TEST(CpuPrecisionRefusal, SaysWhatTheCpuLacks) {
  backend::cpu::limit_isa_from_environment();
  if (backend::cpu::has_avx512_bf16()) return;  // graph_precision_test_avx2 tests it on such a CPU
  try {
    (void)backend::make_cpu_backend({.threads = 1, .bf16 = true});
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("AVX512_BF16"), std::string::npos);
  }
}

}  // namespace
}  // namespace lockstep::graph
