#include "exchange/local_exchange.h"

#include <gtest/gtest.h>

#include <cmath>

#include "allocation_counter.h"
#include "lockstep/error.h"

namespace lockstep::exchange {
namespace {

program::ParameterStore two_parameters() {
  std::vector<graph::ParameterInfo> infos;
  infos.push_back({"a", {3}, 0, graph::Initializer::constant(1)});
  infos.push_back({"b", {2, 2}, 3, graph::Initializer::constant(2)});
  return {infos, 1};
}

StepInfo one_step(LocalExchange& exchange, program::ParameterStore& store, uint64_t step, float gradient) {
  exchange.begin({step, 8});
  std::fill(store.gradients().begin(), store.gradients().end(), gradient);
  exchange.ready({3, 4}, {});
  exchange.ready({0, 3}, {});
  return exchange.finish({}).value_or_throw();
}

TEST(LocalExchange, AppliesTheOptimizerWhenAllGradientsAreReady) {
  program::ParameterStore store = two_parameters();
  LocalExchange exchange(store, {.schedule = {.base = 0.5F}});
  const StepInfo info = one_step(exchange, store, 0, 1.0F);
  EXPECT_EQ(info.step, 1U);
  EXPECT_EQ(info.learning_rate, 0.5F);
  EXPECT_TRUE(std::isnan(info.gradient_norm));
  EXPECT_FLOAT_EQ(store.values()[0], 0.5F);
  EXPECT_FLOAT_EQ(store.values()[6], 1.5F);
}

TEST(LocalExchange, FollowsTheScheduleByTheStepItIsGiven) {
  program::ParameterStore store = two_parameters();
  LocalExchange exchange(store, {.schedule = {.base = 1, .warmup_steps = 4}});
  EXPECT_FLOAT_EQ(one_step(exchange, store, 0, 1).learning_rate, 0.25F);
  EXPECT_FLOAT_EQ(one_step(exchange, store, 2, 1).learning_rate, 0.75F);
}

TEST(LocalExchange, ClipsTheGlobalNormAndTellsItUnclipped) {
  program::ParameterStore store = two_parameters();
  LocalExchange exchange(store, {.schedule = {.base = 1}, .clip_norm = 1});
  const StepInfo info = one_step(exchange, store, 0, 2.0F);
  EXPECT_NEAR(info.gradient_norm, 2 * std::sqrt(7.0), 1e-5);
  EXPECT_NEAR(store.values()[0], 1 - 1 / std::sqrt(7.0), 1e-5);
  one_step(exchange, store, 1, 0.01F);
  EXPECT_NEAR(store.values()[0], 1 - 1 / std::sqrt(7.0) - 0.01, 1e-5) << "a short gradient stays as it is";
}

TEST(LocalExchange, RefusesToFinishWithAGradientMissing) {
  program::ParameterStore store = two_parameters();
  LocalExchange exchange(store, {});
  exchange.begin({0, 1});
  exchange.ready({0, 3}, {});
  EXPECT_THROW((void)exchange.finish({}), Error);
}

TEST(LocalExchange, ExposesTheOptimizersStateAsLongAsTheParameters) {
  program::ParameterStore store = two_parameters();
  LocalExchange adam(store, {.optimizer = {.method = optim::Method::adam}});
  ASSERT_EQ(adam.state().size(), 2U);
  for (const optim::StateSlot& slot : adam.state()) EXPECT_EQ(slot.values.size(), store.count());
}

TEST(LocalExchange, AllocatesNothingPerStep) {
  program::ParameterStore store = two_parameters();
  LocalExchange exchange(store, {.optimizer = {.method = optim::Method::adam}, .clip_norm = 1});
  one_step(exchange, store, 0, 1);
  testing_support::start_counting();
  for (uint64_t step = 1; step < 100; ++step) one_step(exchange, store, step, 1);
  EXPECT_EQ(testing_support::stop_counting().ours, 0U);
}

}  // namespace
}  // namespace lockstep::exchange
