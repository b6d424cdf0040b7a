// Shape errors appear while building and name the op, the argument and both shapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/ops.h"
#include "ops/op_table.h"

namespace lockstep::ops {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Value input(Graph& g, const Shape& shape, DType dtype = DType::f32) { return g.input("x", {dtype, shape}); }

template <class F>
std::string message_of(F build) {
  try {
    build();
  } catch (const ShapeError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ShapeRules, MatmulNamesBothShapes) {
  Graph g;
  const std::string message = message_of([&] { matmul(input(g, {3, 4}), input(g, {5, 6})); });
  EXPECT_THAT(message, AllOf(HasSubstr("matmul"), HasSubstr("[3, 4]"), HasSubstr("[5, 6]"), HasSubstr("4 and 5")));
}

TEST(ShapeRules, MatmulWantsMatrices) {
  Graph g;
  EXPECT_THAT(message_of([&] {
                matmul(input(g, {3, 4, 5}), input(g, {5, 6}));
              }),
              AllOf(HasSubstr("matmul: a"), HasSubstr("[3, 4, 5]"), HasSubstr("rank 2")));
}

TEST(ShapeRules, ConvChecksChannelsKernelAndSize) {
  Graph g;
  const Value x = input(g, {2, 3, 8, 8});
  EXPECT_THAT(message_of([&] {
                conv2d(x, input(g, {4, 5, 3, 3}), window(3));
              }),
              AllOf(HasSubstr("conv2d"), HasSubstr("[4, 5, 3, 3]"), HasSubstr("[2, 3, 8, 8]")));
  EXPECT_THAT(message_of([&] { conv2d(x, input(g, {4, 3, 3, 3}), window(5)); }), HasSubstr("window 5x5"));
  EXPECT_THAT(message_of([&] { conv2d(x, input(g, {4, 3, 9, 9}), window(9)); }), HasSubstr("does not fit"));
  EXPECT_THAT(message_of([&] { conv2d(x, input(g, {4, 3, 3, 3}), window(3, 0)); }), HasSubstr("stride 0x0"));
}

TEST(ShapeRules, PoolPaddingMustBeSmallerThanTheWindow) {
  Graph g;
  EXPECT_THAT(message_of([&] { max_pool(input(g, {1, 1, 4, 4}), window(2, 2, 2)); }), HasSubstr("padding"));
}

TEST(ShapeRules, SamplingChecksThetaGridAndSizes) {
  Graph g;
  const Value image = input(g, {2, 1, 8, 8});
  EXPECT_THAT(message_of([&] {
                affine_grid(input(g, {2, 4}), 8, 8, Sampling::study);
              }),
              AllOf(HasSubstr("affine_grid: theta"), HasSubstr("[2, 4]"), HasSubstr("[N, 6]")));
  EXPECT_THAT(message_of([&] { affine_grid(input(g, {2, 6}), 0, 8, Sampling::study); }), HasSubstr("height 0"));
  EXPECT_THAT(message_of([&] {
                bilinear_sample(image, input(g, {3, 4, 4, 2}), Sampling::study);
              }),
              AllOf(HasSubstr("[3, 4, 4, 2]"), HasSubstr("[2, 1, 8, 8]"), HasSubstr("[2, height, width, 2]")));
}

TEST(ShapeRules, LrnChecksItsConstants) {
  Graph g;
  const Value x = input(g, {2, 3, 8, 8});
  EXPECT_THAT(message_of([&] { lrn(input(g, {2, 3})); }), AllOf(HasSubstr("lrn: x"), HasSubstr("rank 4")));
  EXPECT_THAT(message_of([&] { lrn(x, {.radius = -1}); }), HasSubstr("radius -1"));
  EXPECT_THAT(message_of([&] { lrn(x, {.bias = 0.0F}); }), HasSubstr("bias 0"));
}

TEST(ShapeRules, BroadcastFailureShowsBothShapes) {
  Graph g;
  EXPECT_THAT(message_of([&] {
                add(input(g, {2, 3}), input(g, {4}));
              }),
              AllOf(HasSubstr("add"), HasSubstr("[2, 3]"), HasSubstr("[4]")));
}

TEST(ShapeRules, LabelsMustBeIntegersAndFitTheRows) {
  Graph g;
  const Value scores = input(g, {6, 10});
  EXPECT_THAT(message_of([&] { softmax_cross_entropy(scores, input(g, {6})); }), HasSubstr("must be int32"));
  EXPECT_THAT(message_of([&] { correct(scores, input(g, {5}, DType::i32)); }),
              AllOf(HasSubstr("[5]"), HasSubstr("[6, 10]")));
}

TEST(ShapeRules, ReshapeInfersOneDimensionAndRejectsTheRest) {
  Graph g;
  const Value x = input(g, {4, 6});
  EXPECT_EQ(reshape(x, std::vector<int64_t>{3, -1}).shape(), (Shape{3, 8}));
  EXPECT_THAT(message_of([&] { reshape(x, std::vector<int64_t>{5, -1}); }), HasSubstr("[5, -1]"));
  EXPECT_THAT(message_of([&] { reshape(x, std::vector<int64_t>{-1, -1}); }), HasSubstr("reshape"));
  EXPECT_THAT(message_of([&] { reshape(x, Shape{5, 5}); }), HasSubstr("[5, 5]"));
}

TEST(ShapeRules, AxesAndRangesAreChecked) {
  Graph g;
  const Value x = input(g, {4, 6});
  EXPECT_THAT(message_of([&] { reduce_sum(x, std::vector<int>{2}); }), HasSubstr("axis 2"));
  EXPECT_THAT(message_of([&] { slice(x, 1, 4, 3); }), HasSubstr("[4, 7)"));
  EXPECT_THAT(message_of([&] { transpose(x, std::vector<int64_t>{0, 0}); }), HasSubstr("[0, 0]"));
  EXPECT_THAT(message_of([&] { concat(std::vector<Value>{x, input(g, {4, 5, 1})}, 0); }), HasSubstr("[4, 5, 1]"));
  EXPECT_THAT(message_of([&] { dropout(x, 1.0F); }), HasSubstr("rate"));
}

TEST(ShapeRules, ValuesOfTwoGraphsDoNotMix) {
  Graph g;
  Graph other;
  EXPECT_THAT(message_of([&] { add(input(g, {2}), input(other, {2})); }), HasSubstr("different graphs"));
}

TEST(ShapeRules, NonsenseIsAnErrorNotACrash) {
  EXPECT_THAT(message_of([] { same_window(3, 0, 8, 8); }), HasSubstr("stride 0"));
  EXPECT_THAT(message_of([] { relu(Value{}); }), HasSubstr("not a value of a graph"));
}

TEST(Gradients, AFailureLeavesTheGraphInTheForwardPass) {
  Graph g;
  const Value w = g.parameter("w", {2, 3}, graph::Initializer::zeros());
  const Value loss = reduce_sum(correct(w, input(g, {2}, DType::i32)));
  EXPECT_NE(message_of([&] { gradients(loss); }), "no error");
  const Value later = square(w);
  EXPECT_FALSE(g.node(later.id()).backward);
}

TEST(ShapeRules, SamePaddingIsTensorFlows) {
  const Window w = same_window(11, 4, 224, 224);
  EXPECT_EQ(w.pad_top + w.pad_bottom, 7);
  EXPECT_EQ(w.pad_top, 3);
}

TEST(Gradients, LossMustBeAScalar) {
  Graph g;
  const Value x = g.parameter("w", {3}, graph::Initializer::zeros());
  EXPECT_THAT(message_of([&] { gradients(relu(x)); }), AllOf(HasSubstr("[3]"), HasSubstr("scalar")));
}

TEST(Gradients, AnOpWithoutGradientIsNamed) {
  Graph g;
  const Value w = g.parameter("w", {2, 3}, graph::Initializer::zeros());
  const Value loss = reduce_sum(correct(w, input(g, {2}, DType::i32)));
  EXPECT_THAT(message_of([&] { gradients(loss); }), HasSubstr("correct"));
}

TEST(Gradients, OfAParameterTheLossIgnoresAreZeros) {
  Graph g;
  const Value used = g.parameter("used", {3}, graph::Initializer::zeros());
  g.parameter("unused", {4}, graph::Initializer::zeros());
  const auto grads = gradients(reduce_sum(square(used)));
  ASSERT_EQ(grads.size(), 2U);
  EXPECT_EQ(grads[1].shape(), (Shape{4}));
  EXPECT_EQ(g.node(grads[1].id()).op, graph::Op::constant);
}

TEST(Gradients, NodesAreMarkedAndScoped) {
  Graph g;
  const Value w = g.parameter("w", {3}, graph::Initializer::zeros());
  const size_t forward = [&] {
    reduce_sum(relu(w));
    return g.nodes().size();
  }();
  gradients(Value(&g, {static_cast<int32_t>(forward) - 1, 0}));
  for (size_t i = forward; i < g.nodes().size(); ++i) {
    EXPECT_TRUE(g.nodes()[i].backward);
    EXPECT_EQ(g.nodes()[i].name.rfind("gradients/", 0), 0U) << g.nodes()[i].name;
  }
}

TEST(OpTable, EveryForwardOpButSourcesAndCountsHasAGradient) {
  for (const OpDef& op : op_table()) {
    const bool computes = op.family != Family::source && op.family != Family::backward &&
                          op.family != Family::internal && op.op != Op::correct && op.op != Op::random_normal &&
                          op.op != Op::random_uniform;
    EXPECT_EQ(op.gradient != nullptr, computes) << op.name;
  }
}

}  // namespace
}  // namespace lockstep::ops
