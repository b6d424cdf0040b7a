#include "optim/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "lockstep/error.h"

namespace lockstep::optim {
namespace {

using Kind = Schedule::Kind;

TEST(Schedule, ConstantStaysAtItsBase) {
  const Schedule schedule{.base = 0.3F};
  EXPECT_EQ(learning_rate(schedule, 0), 0.3F);
  EXPECT_EQ(learning_rate(schedule, 1'000'000), 0.3F);
}

TEST(Schedule, StepDropsAtMultiplesAndExponentialGlidesThroughTheSamePoints) {
  const Schedule step{.kind = Kind::step, .base = 1, .decay_rate = 0.5F, .decay_steps = 10};
  const Schedule glide{.kind = Kind::exponential, .base = 1, .decay_rate = 0.5F, .decay_steps = 10};
  EXPECT_FLOAT_EQ(learning_rate(step, 9), 1);
  EXPECT_FLOAT_EQ(learning_rate(step, 10), 0.5F);
  EXPECT_FLOAT_EQ(learning_rate(step, 25), 0.25F);
  EXPECT_FLOAT_EQ(learning_rate(glide, 10), 0.5F);
  EXPECT_FLOAT_EQ(learning_rate(glide, 5), std::sqrt(0.5F));
}

TEST(Schedule, CosineLinearAndPolynomialReachTheirEndAndStayThere) {
  for (const Kind kind : {Kind::cosine, Kind::linear, Kind::polynomial}) {
    const Schedule schedule{.kind = kind, .base = 1, .end = 0.1F, .power = 2, .decay_steps = 100};
    EXPECT_FLOAT_EQ(learning_rate(schedule, 0), 1) << name(kind);
    EXPECT_FLOAT_EQ(learning_rate(schedule, 100), 0.1F) << name(kind);
    EXPECT_FLOAT_EQ(learning_rate(schedule, 5000), 0.1F) << name(kind);
    for (uint64_t step = 1; step <= 100; ++step) {
      EXPECT_LT(learning_rate(schedule, step), learning_rate(schedule, step - 1)) << name(kind);
    }
  }
  const auto middle = [](Kind kind) {
    return learning_rate({.kind = kind, .base = 1, .power = 2, .decay_steps = 100}, 50);
  };
  EXPECT_FLOAT_EQ(middle(Kind::cosine), 0.5F);
  EXPECT_FLOAT_EQ(middle(Kind::linear), 0.5F);
  EXPECT_FLOAT_EQ(middle(Kind::polynomial), 0.25F);
}

TEST(Schedule, WarmUpRisesLinearlyToTheBaseAndDecayStartsAfterIt) {
  const Schedule schedule{.kind = Kind::linear, .base = 1, .decay_steps = 10, .warmup_steps = 4};
  EXPECT_FLOAT_EQ(learning_rate(schedule, 0), 0.25F);
  EXPECT_FLOAT_EQ(learning_rate(schedule, 3), 1);
  EXPECT_FLOAT_EQ(learning_rate(schedule, 4), 1);
  EXPECT_FLOAT_EQ(learning_rate(schedule, 9), 0.5F);
}

TEST(Schedule, ADecayWithoutStepsIsRefused) {
  EXPECT_THROW(learning_rate({.kind = Kind::cosine}, 0), UsageError);
  EXPECT_THROW(parse_schedule("cosin"), UsageError);
  for (const std::string& text : schedule_names()) EXPECT_EQ(name(parse_schedule(text)), text);
}

}  // namespace
}  // namespace lockstep::optim
