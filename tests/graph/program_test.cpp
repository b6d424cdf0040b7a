#include "program/program.h"

#include <gtest/gtest.h>

#include <cstring>

#include "backend/null/null_backend.h"
#include "graph/bench_program.h"
#include "lockstep/error.h"
#include "lockstep/ops.h"

namespace lockstep::graph {
namespace {

TEST(Program, AnnouncesEveryGradientOnceAndLastLayersFirst) {
  const auto backend = backend::make_null_backend();
  Bench bench("lenet", 8, *backend);
  std::vector<program::ParameterRange> announced;
  bench.program().run({}, [&](program::ParameterRange range) { announced.push_back(range); });
  ASSERT_EQ(announced.size(), bench.store().infos().size());
  size_t total = 0;
  for (const program::ParameterRange& range : announced) total += range.count;
  EXPECT_EQ(total, size_t{61706});
  EXPECT_GT(announced.front().offset, announced.back().offset);
}

TEST(Program, AGradientIsFinalWhenItIsAnnounced) {
  const auto backend = cpu(1);
  Bench bench("lenet", 16, *backend);
  std::vector<float> seen(bench.store().count());
  bench.program().run({}, [&](program::ParameterRange range) {
    std::memcpy(seen.data() + range.offset, bench.store().gradients().data() + range.offset,
                range.count * sizeof(float));
  });
  EXPECT_EQ(std::memcmp(seen.data(), bench.store().gradients().data(), seen.size() * sizeof(float)), 0);
}

TEST(Program, SameSeedGivesTheSameBitsTwice) {
  for (const int threads : {1, 2}) {
    const auto backend = cpu(threads);
    Bench a("lenet", 19, *backend);
    Bench b("lenet", 19, *backend);
    a.program().run({});
    b.program().run({});
    EXPECT_EQ(std::memcmp(a.store().gradients().data(), b.store().gradients().data(), a.store().count() * 4), 0);
    EXPECT_EQ(a.loss(), b.loss());
  }
}

TEST(Program, ParametersAndGradientsMayMoveBetweenRuns) {
  const auto backend = cpu(1);
  Bench bench("lr", 5, *backend);
  bench.program().run({});
  const std::vector<float> first(bench.store().gradients().begin(), bench.store().gradients().end());
  std::vector<float> parameters(bench.store().values().begin(), bench.store().values().end());
  std::vector<float> gradients(first.size());
  bench.program().bind_parameters(parameters.data());
  bench.program().bind_gradients(gradients.data());
  bench.program().run({});
  EXPECT_EQ(first, gradients);
}

TEST(Program, LossFallsWhenParametersFollowTheGradient) {
  const auto backend = cpu(2);
  Bench bench("lenet", 32, *backend);
  bench.program().run({});
  const float before = bench.loss();
  for (int step = 0; step < 30; ++step) {
    for (size_t i = 0; i < bench.store().count(); ++i) bench.store().values()[i] -= 0.1F * bench.store().gradients()[i];
    bench.program().parameters_changed();
    bench.program().run({});
  }
  EXPECT_LT(bench.loss(), before * 0.95F);
}

TEST(Program, GradientsMustFitTheParameters) {
  const auto backend = backend::make_null_backend();
  Graph g;
  const Value a = g.parameter("a", {3}, Initializer::zeros());
  g.parameter("b", {4}, Initializer::zeros());
  const Value loss = ops::reduce_sum(ops::square(a));
  const auto gradients = ops::gradients(loss);
  EXPECT_THROW(program::Program(g, {loss}, {gradients[0]}, *backend), ShapeError);
  EXPECT_THROW(program::Program(g, {loss}, {gradients[1], gradients[0]}, *backend), ShapeError);
}

TEST(Program, TiesShareTheGradientOfAMaximum) {
  const auto backend = cpu(1);
  Graph g;
  const Value x = g.input("x", {DType::f32, {4}});
  const Value gradient = ops::gradients(ops::reduce_max(x), std::vector<Value>{x})[0];
  program::Program program(g, {gradient}, {}, *backend);
  const std::vector<float> values{2, 5, 5, 1};
  program.bind_input(0, values.data());
  program.run({});
  const auto got = program.output(0).as<float>();
  EXPECT_EQ(std::vector<float>(got.begin(), got.end()), (std::vector<float>{0, 0.5F, 0.5F, 0}));
}

TEST(Program, ARowThatRepeatsIsNotWrittenOver) {
  Graph g;
  const Value row = g.input("row", {DType::f32, {5}});
  const Value matrix = g.input("matrix", {DType::f32, {2, 5}});
  const auto backend = cpu(1);
  program::Program program(g, {ops::sub(ops::neg(row), matrix)}, {}, *backend);
  const std::vector<float> rows{1, 2, 3, 4, 5};
  const std::vector<float> numbers{10, 20, 30, 40, 50, 60, 70, 80, 90, 100};
  program.bind_input(0, rows.data());
  program.bind_input(1, numbers.data());
  program.run({});
  const auto result = program.output(0).as<float>();
  for (size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(result[i], -rows[i % 5] - numbers[i]) << i;
}

TEST(Program, EmptyTensorsAreNoProblem) {
  const auto backend = cpu(1);
  Graph g;
  const Value x = g.input("x", {DType::f32, {3, 0}});
  const Value y = ops::add(x, g.input("row", {DType::f32, {0}}));
  program::Program program(g, {y}, {}, *backend);
  const float nothing = 0;
  program.bind_input(0, &nothing);
  program.bind_input(1, &nothing);
  program.run({});
  EXPECT_EQ(program.output(0).as<float>().size(), 0U);
}

TEST(Random, MasksDependOnTheGlobalRowNotOnWhoComputes) {
  const auto make = [](int64_t batch, const backend::Backend& backend) {
    Graph g;
    const Value x = g.input("x", {DType::f32, {batch, 10}});
    const Value y = ops::dropout(x, 0.5F);
    return program::Program(std::move(g), {y}, {}, backend);
  };
  const auto backend = cpu(1);
  program::Program whole = make(8, *backend);
  program::Program half = make(4, *backend);
  const std::vector<float> ones(80, 1.0F);
  whole.bind_input(0, ones.data());
  half.bind_input(0, ones.data());
  whole.run({.seed = 9, .step = 4, .first_row = 0});
  half.run({.seed = 9, .step = 4, .first_row = 4});
  EXPECT_EQ(std::memcmp(whole.output(0).as<float>().data() + 40, half.output(0).as<float>().data(), 40 * 4), 0);
  half.run({.seed = 9, .step = 5, .first_row = 4});
  EXPECT_NE(std::memcmp(whole.output(0).as<float>().data() + 40, half.output(0).as<float>().data(), 40 * 4), 0);
}

TEST(Random, DropoutKeepsTheExpectedShare) {
  const auto backend = cpu(2);
  Graph g;
  const Value x = g.input("x", {DType::f32, {100, 200}});
  const Value y = ops::dropout(x, 0.25F);
  program::Program program(g, {y}, {}, *backend);
  const std::vector<float> ones(20000, 1.0F);
  program.bind_input(0, ones.data());
  program.run({.seed = 1, .step = 1, .first_row = 0});
  double sum = 0;
  size_t zeros = 0;
  for (const float v : program.output(0).as<float>()) {
    sum += v;
    zeros += v == 0.0F ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(zeros) / 20000, 0.25, 0.015);
  EXPECT_NEAR(sum / 20000, 1.0, 0.02);
}

}  // namespace
}  // namespace lockstep::graph
