#include "optim/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "backend/cpu/isa.h"
#include "base/random.h"
#include "lockstep/error.h"
#include "optim/update_kernels.h"

namespace lockstep::optim {
namespace {

using ::testing::HasSubstr;

/// The optimizers by their definitions in papers and PyTorch, in double, one element at a time.
class Plain {
 public:
  Plain(const OptimizerSettings& settings, std::span<const float> parameters)
      : settings_(settings), values_(parameters.begin(), parameters.end()), a_(values_.size()), b_(values_.size()) {}

  void apply(std::span<const float> gradients, const Update& update) {
    for (size_t i = 0; i < values_.size(); ++i) {
      double& p = values_[i];
      const double g = static_cast<double>(gradients[i]) * update.gradient_scale + settings_.weight_decay * p;
      p -= update.learning_rate * direction(i, g, static_cast<double>(update.step + 1));
    }
  }

  [[nodiscard]] const std::vector<double>& values() const { return values_; }

 private:
  double direction(size_t i, double g, double t) {
    if (settings_.method == Method::sgd) return g;
    if (settings_.method == Method::momentum) {
      a_[i] = settings_.momentum * a_[i] + g;
      return settings_.nesterov ? g + settings_.momentum * a_[i] : a_[i];
    }
    a_[i] = settings_.beta1 * a_[i] + (1 - settings_.beta1) * g;
    b_[i] = settings_.beta2 * b_[i] + (1 - settings_.beta2) * g * g;
    const double m = a_[i] / (1 - std::pow(settings_.beta1, t));
    const double v = b_[i] / (1 - std::pow(settings_.beta2, t));
    return m / (std::sqrt(v) + settings_.epsilon);
  }

  OptimizerSettings settings_;
  std::vector<double> values_;
  std::vector<double> a_;
  std::vector<double> b_;
};

std::vector<float> random_values(size_t count, uint64_t seed) {
  base::Sequence random(seed, 1);
  std::vector<float> values(count);
  for (float& value : values) value = random.normal();
  return values;
}

std::vector<OptimizerSettings> all_settings() {
  std::vector<OptimizerSettings> all;
  for (const float decay : {0.0F, 0.01F}) {
    all.push_back({.method = Method::sgd, .weight_decay = decay});
    all.push_back({.method = Method::momentum, .weight_decay = decay});
    all.push_back({.method = Method::momentum, .momentum = 0.5F, .nesterov = true, .weight_decay = decay});
    all.push_back({.method = Method::adam, .weight_decay = decay});
    all.push_back({.method = Method::adam, .beta1 = 0.5, .beta2 = 0.99, .epsilon = 1e-3F, .weight_decay = decay});
  }
  return all;
}

class Optimizers : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { backend::cpu::limit_isa_from_environment(); }
};

TEST_F(Optimizers, AgreeWithTheirDefinitionsInDouble) {
  for (const OptimizerSettings& settings : all_settings()) {
    for (const size_t count : {size_t{1}, size_t{7}, size_t{16}, size_t{33}, size_t{1000}}) {
      std::vector<float> parameters = random_values(count, 1);
      Plain plain(settings, parameters);
      const auto optimizer = make_optimizer(settings, count);
      for (uint64_t step = 0; step < 20; ++step) {
        const std::vector<float> gradients = random_values(count, 100 + step);
        const Update update{step, 0.01F, step % 2 == 0 ? 1.0F : 0.25F};
        optimizer->apply(parameters, gradients, update);
        plain.apply(gradients, update);
      }
      for (size_t i = 0; i < count; ++i) ASSERT_NEAR(parameters[i], plain.values()[i], 2e-5) << name(settings.method);
    }
  }
}

TEST_F(Optimizers, TouchNothingBeyondTheirRange) {
  for (const OptimizerSettings& settings : all_settings()) {
    std::vector<float> parameters(40, 1.0F);
    const std::vector<float> gradients(40, 1.0F);
    make_optimizer(settings, 37)->apply(std::span(parameters).first(37), std::span(gradients).first(37), {0, 0.1F, 1});
    EXPECT_LT(parameters[36], 1.0F);
    EXPECT_EQ(parameters[37], 1.0F);
    EXPECT_EQ(parameters[38], 1.0F);
  }
}

TEST_F(Optimizers, GiveTheSameBitsForAnySplitAndThreadCount) {
  constexpr size_t kCount = 70'001;
  const std::vector<float> start = random_values(kCount, 3);
  const std::vector<float> gradients = random_values(kCount, 4);
  for (const OptimizerSettings& settings : all_settings()) {
    std::vector<float> whole = start;
    std::vector<float> threaded = start;
    std::vector<float> pieces = start;
    const auto one = make_optimizer(settings, kCount);
    const auto many = make_optimizer(settings, kCount, 3);
    const auto sliced = make_optimizer(settings, kCount);
    for (uint64_t step = 0; step < 3; ++step) {
      const Update update{step, 0.02F, 0.5F};
      one->apply(whole, gradients, update);
      many->apply(threaded, gradients, update);
      for (size_t first = 0; first < kCount;) {
        const size_t count = std::min<size_t>(kCount - first, first == 0 ? 13 : 9973);
        sliced->apply(first, std::span(pieces).subspan(first, count), std::span(gradients).subspan(first, count),
                      update);
        first += count;
      }
    }
    EXPECT_EQ(whole, threaded) << name(settings.method);
    EXPECT_EQ(whole, pieces) << name(settings.method);
  }
}

TEST_F(Optimizers, GiveTheSameBitsHoweverTheThreadsDivideTheParameters) {
  constexpr size_t kCount = 30'000;
  // Columns of a matrix of 100 x 200 from element 7 on for two threads; the rest is nobody's.
  std::vector<base::Shares> by_thread{{base::rectangle(0, 100, 0, 70, 200)},
                                      {base::rectangle(0, 100, 70, 130, 200), {21'000, 1, 2'500, 2'500}}};
  for (base::Shares& shares : by_thread) shares[0].first += 7;
  const std::vector<float> start = random_values(kCount, 3);
  const std::vector<float> gradients = random_values(kCount, 4);
  for (const OptimizerSettings& settings : all_settings()) {
    std::vector<float> whole = start;
    std::vector<float> divided = start;
    const auto one = make_optimizer(settings, kCount);
    const auto many = make_optimizer(settings, kCount, 2);
    many->divide(by_thread);
    for (uint64_t step = 0; step < 3; ++step) {
      const Update update{step, 0.02F, 0.5F};
      one->apply(whole, gradients, update);
      many->apply(divided, gradients, update);
    }
    EXPECT_EQ(whole, divided) << name(settings.method);
  }
}

TEST_F(Optimizers, FromOneSetOfBuffersIntoAnotherGivesTheBitsOfInPlace) {
  for (const size_t count : {size_t{1}, size_t{19}, size_t{64}, size_t{70'001}}) {
    for (const OptimizerSettings& settings : all_settings()) {
      const auto slots = slot_names(settings.method).size();
      const auto in_place = make_optimizer(settings, count, 2);
      std::vector<float> parameters = random_values(count, 7);
      // Two versions, each of parameters and slots; a step overwrites the older one.
      std::array<std::vector<std::vector<float>>, 2> versions;
      for (auto& version : versions) version.assign(1 + slots, std::vector<float>(count));
      versions[0][0] = parameters;
      for (auto& values : versions[1]) values.assign(count, 1e30F);
      const auto block = [&](size_t version) {
        Block<float> result{versions[version][0]};
        for (size_t i = 0; i < slots; ++i) result.slots[i] = versions[version][1 + i];
        return result;
      };
      for (uint64_t step = 0; step < 4; ++step) {
        const std::vector<float> gradients = random_values(count, 200 + step);
        const Update update{step, 0.03F, 0.5F};
        const auto before = versions[step % 2];
        apply_update(settings, update, block(step % 2), gradients, block((step + 1) % 2), 1 + static_cast<int>(step));
        in_place->apply(parameters, gradients, update);
        ASSERT_EQ(versions[(step + 1) % 2][0], parameters) << name(settings.method) << " step " << step;
        const auto state = in_place->state();
        for (size_t i = 0; i < slots; ++i) {
          const std::span<const float> expected = state[i].values;
          ASSERT_TRUE(std::ranges::equal(versions[(step + 1) % 2][1 + i], expected)) << state[i].name;
        }
        ASSERT_EQ(versions[step % 2], before) << "what is read stays as it is";
      }
    }
  }
}

TEST(ApplyUpdate, RefusesBuffersOfOtherLengths) {
  std::vector<float> ten(10);
  std::vector<float> nine(9);
  const OptimizerSettings momentum{.method = Method::momentum};
  const Block<float> right{ten, {ten, {}}};
  EXPECT_NO_THROW(apply_update(momentum, {}, right, ten, right));
  EXPECT_THROW(apply_update(momentum, {}, right, nine, right), UsageError);
  EXPECT_THROW(apply_update(momentum, {}, Block<float>{nine, {ten, {}}}, ten, right), UsageError);
  EXPECT_THROW(apply_update(momentum, {}, right, ten, Block<float>{ten, {nine, {}}}), UsageError);
  EXPECT_THROW(apply_update(momentum, {}, right, ten, Block<float>{ten}), UsageError);
  EXPECT_THROW(apply_update({.method = Method::adam}, {}, right, ten, right), UsageError);
  EXPECT_NO_THROW(apply_update({}, {}, Block<float>{ten}, ten, Block<float>{ten}));
}

TEST(Sgd, MinimisesAQuadraticAtTheRateOfItsClosedForm) {
  const auto optimizer = make_optimizer({.method = Method::sgd}, 1);
  std::vector<float> x{1.0F};
  for (uint64_t step = 0; step < 10; ++step) {
    const std::vector<float> gradient{2 * x[0]};  // of x^2
    optimizer->apply(x, gradient, {step, 0.1F, 1});
  }
  EXPECT_NEAR(x[0], std::pow(0.8, 10), 1e-6);
}

TEST(Adam, TakesAFirstStepOfTheLearningRateWhateverTheGradient) {
  for (const float gradient : {1e-3F, 1.0F, -1e4F}) {
    const auto optimizer = make_optimizer({.method = Method::adam}, 1);
    std::vector<float> x{0.0F};
    optimizer->apply(x, std::vector<float>{gradient}, {0, 0.001F, 1});
    EXPECT_NEAR(x[0], gradient > 0 ? -0.001 : 0.001, 1e-7);
  }
}

TEST(OptimizerState, IsNamedAndRestoresTheSameBits) {
  constexpr size_t kCount = 100;
  for (const Method method : {Method::sgd, Method::momentum, Method::adam}) {
    const auto first = make_optimizer({.method = method}, kCount);
    const auto second = make_optimizer({.method = method}, kCount);
    std::vector<float> a = random_values(kCount, 5);
    const std::vector<float> gradients = random_values(kCount, 6);
    first->apply(a, gradients, {0, 0.1F, 1});
    std::vector<float> b = a;
    const auto from = first->state();
    const auto to = second->state();
    ASSERT_EQ(from.size(), static_cast<size_t>(state_slots(method)));
    for (size_t i = 0; i < from.size(); ++i) {
      EXPECT_EQ(from[i].name, to[i].name);
      std::copy(from[i].values.begin(), from[i].values.end(), to[i].values.begin());
    }
    first->apply(a, gradients, {1, 0.1F, 1});
    second->apply(b, gradients, {1, 0.1F, 1});
    EXPECT_EQ(a, b);
  }
}

TEST(Optimizer, RefusesRangesAndSettingsThatMakeNoSense) {
  const auto optimizer = make_optimizer({}, 10);
  std::vector<float> values(10);
  EXPECT_THROW(optimizer->apply(std::span(values), std::span(values).first(9), {}), UsageError);
  EXPECT_THROW(optimizer->apply(1, std::span(values), std::span(values), {}), UsageError);
  EXPECT_THROW(make_optimizer({.momentum = 1.0F}, 1), UsageError);
  EXPECT_THROW(make_optimizer({.beta2 = 1.0}, 1), UsageError);
  EXPECT_THROW(make_optimizer({.weight_decay = -1}, 1), UsageError);
  EXPECT_THROW(make_optimizer({.momentum = std::nanf("")}, 1), UsageError);
}

TEST(Optimizer, RefusesADivisionThatGivesAnElementTwiceOrDoesNotExist) {
  const auto optimizer = make_optimizer({}, 100, 2);
  EXPECT_NO_THROW(optimizer->divide({{{0, 1, 50, 50}}, {{50, 1, 50, 50}}}));
  EXPECT_NO_THROW(optimizer->divide({}));
  EXPECT_THROW(optimizer->divide({{{0, 1, 50, 50}}, {{49, 1, 50, 50}}}), UsageError);
  EXPECT_THROW(optimizer->divide({{{0, 5, 20, 10}}}), UsageError) << "runs of one thread overlap";
  EXPECT_THROW(optimizer->divide({{{60, 1, 41, 41}}}), UsageError);
  EXPECT_THROW(optimizer->divide({{{-1, 1, 5, 5}}}), UsageError);
}

TEST(Optimizer, SuggestsTheNearestName) {
  try {
    parse_method("adma");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'adam'?"));
  }
}

TEST(SumOfSquares, IsExactAndIndependentOfTheThreads) {
  backend::cpu::limit_isa_from_environment();
  for (const size_t count : {size_t{0}, size_t{1}, size_t{15}, size_t{4097}, size_t{300'001}}) {
    const std::vector<float> values = random_values(count, 9);
    double expected = 0;
    for (const float value : values) expected += static_cast<double>(value) * value;
    const double sum = sum_of_squares(values, 1);
    EXPECT_NEAR(sum, expected, 1e-9 * expected);
    EXPECT_EQ(sum, sum_of_squares(values, 2));
    EXPECT_EQ(sum, sum_of_squares(values, 3));
  }
}

TEST(AddWeighted, AddsAndScalesWholeArrays) {
  backend::cpu::limit_isa_from_environment();
  for (const size_t count : {size_t{1}, size_t{31}, size_t{50'000}}) {
    const std::vector<float> src = random_values(count, 10);
    std::vector<float> dst = random_values(count, 11);
    const std::vector<float> before = dst;
    add_weighted(0.5F, 0.25F, src.data(), dst.data(), count, 2);
    for (size_t i = 0; i < count; ++i) ASSERT_NEAR(dst[i], (before[i] + 0.5F * src[i]) * 0.25F, 1e-6);
    std::vector<float> other(count, 1e30F);
    add_weighted(0.5F, 0.25F, before.data(), src.data(), other.data(), count, 1);
    ASSERT_EQ(other, dst) << "into another array";
    std::vector<float> over = src;
    add_weighted(0.5F, 0.25F, before.data(), over.data(), over.data(), count, 1);
    ASSERT_EQ(over, dst) << "over the second";
  }
}

}  // namespace
}  // namespace lockstep::optim
