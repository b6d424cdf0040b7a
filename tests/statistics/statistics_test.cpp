// The reference numbers are from scipy 1.17 (stats.t, ttest_rel, ttest_ind with equal_var=False, linregress). Those of
// Fieller's interval are the roots of scipy's t test of first - c * second.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "statistics/decision.h"
#include "statistics/estimate.h"
#include "statistics/student.h"

namespace lockstep::statistics {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Repeats kSlow{{1, 3.74}, {2, 3.81}, {3, 3.69}, {4, 3.90}, {5, 3.77}};
const Repeats kFast{{1, 1.42}, {2, 1.39}, {3, 1.47}, {4, 1.55}, {5, 1.40}};

/// Gives the repeats other numbers, so that they share none.
Repeats apart(const Repeats& repeats) {
  Repeats other;
  for (const auto& [repeat, value] : repeats) other[repeat + 100] = value;
  return other;
}

void expect_interval(const Estimate& estimate, double value, double low, double high) {
  EXPECT_NEAR(estimate.value, value, 1e-9);
  EXPECT_NEAR(estimate.low, low, 1e-9);
  EXPECT_NEAR(estimate.high, high, 1e-9);
}

TEST(Student, QuantilesAreTheKnownOnes) {
  EXPECT_NEAR(t_quantile(0.975, 1), 12.706204736174694, 1e-9);
  EXPECT_NEAR(t_quantile(0.975, 2), 4.302652729749462, 1e-10);
  EXPECT_NEAR(t_quantile(0.975, 4), 2.7764451051977934, 1e-10);
  EXPECT_NEAR(t_quantile(0.975, 29), 2.045229642132703, 1e-10);
  EXPECT_NEAR(t_quantile(0.9, 2.5), 1.7302509288071766, 1e-10);
  EXPECT_NEAR(t_quantile(0.975, 1000), 1.9623390808264083, 1e-10);
  EXPECT_NEAR(t_quantile(0.025, 4), -2.7764451051977934, 1e-10);
}

TEST(Student, ProbabilitiesAreTheKnownOnes) {
  EXPECT_NEAR(t_probability(0.5, 1), 0.6475836176504333, 1e-12);
  EXPECT_NEAR(t_probability(-2, 3), 0.06966298427942152, 1e-12);
  EXPECT_NEAR(t_probability(1.96, 1e6), 0.9750019662073651, 1e-9);
  EXPECT_NEAR(t_probability(-40, 2), 0.0003122073360923703, 1e-12);
}

TEST(Estimate, OfAMeanHasStudentsInterval) {
  expect_interval(mean_of(kSlow), 3.782, 3.6836809079201314, 3.8803190920798687);
}

TEST(Estimate, OfPairsComparesRepeatByRepeat) {
  const Estimate estimate = difference_of(kFast, kSlow);
  expect_interval(estimate, -2.336, -2.4283350640273103, -2.2436649359726895);
  EXPECT_TRUE(estimate.paired);
  EXPECT_NEAR(estimate.effect, -31.41306209465653, 1e-9);
}

TEST(Estimate, WithoutCommonRepeatsIsWelchs) {
  const Estimate estimate = difference_of(kFast, apart({{1, 3.74}, {2, 3.81}, {3, 3.69}}));
  expect_interval(estimate, -2.300666666666667, -2.4202306996585548, -2.181102633674779);
  EXPECT_FALSE(estimate.paired);
  EXPECT_NEAR(estimate.freedom, 4.685052925993325, 1e-9);
}

TEST(Estimate, OfARatioHasFiellersInterval) {
  expect_interval(ratio_of(kFast, kSlow), 0.3823373876255948, 0.3634330741230858, 0.4012119869825864);
  expect_interval(ratio_of(apart({{1, 1.0}, {2, 1.6}, {3, 0.7}}), kSlow), 0.29085140137493387, -0.009276702815956906,
                  0.5919196935208261);
}

TEST(Estimate, OfARatioToWhatMayBeZeroIsUnbounded) {
  const Estimate estimate = ratio_of(kFast, {{1, 1}, {2, -1}, {3, 0.5}, {4, 2}, {5, -0.4}});
  EXPECT_EQ(estimate.low, -INFINITY);
  EXPECT_EQ(estimate.high, INFINITY);
  EXPECT_EQ(repeats_to_decide(estimate, {0, 1}), 0);
  EXPECT_FALSE(ratio_of(kFast, {{1, 0}, {2, 0}}).has_value());
}

TEST(Estimate, OfOneRunHasNoInterval) {
  EXPECT_FALSE(mean_of({{1, 3.0}}).has_interval());
  EXPECT_FALSE(ratio_of(kFast, {{1, 3.0}}).has_interval());
  EXPECT_EQ(decide(mean_of({{1, 3.0}}), {0, 10}), Decision::no_interval);
  EXPECT_EQ(decide(mean_of({}), {0, 10}), Decision::no_value);
  EXPECT_EQ(decide(mean_of({{1, NAN}}), {0, 10}), Decision::no_value);
}

TEST(Decision, NeedsTheWholeInterval) {
  const Estimate estimate = mean_of(kSlow);  // 3.68 to 3.88
  EXPECT_EQ(decide(estimate, {3, 4}), Decision::inside);
  EXPECT_EQ(decide(estimate, {4, 5}), Decision::outside);
  EXPECT_EQ(decide(estimate, {3.7, 5}), Decision::undecided);
  EXPECT_EQ(decide(estimate, {-INFINITY, 3.9, true}), Decision::inside);
  EXPECT_EQ(opposite(decide(estimate, {3, 4})), Decision::outside);
  EXPECT_EQ(opposite(Decision::undecided), Decision::undecided);
}

TEST(Decision, AboutTheEndOfARegionFollowsItsKind) {
  EXPECT_EQ(decide(exactly(0), {-INFINITY, 0, true}), Decision::outside);
  EXPECT_EQ(decide(exactly(0), {-INFINITY, 0, false}), Decision::inside);
  EXPECT_EQ(decide(exactly(0), {0, 0}), Decision::inside);
}

TEST(Decision, SaysHowManyRepeatsItWouldTake) {
  const Estimate estimate = mean_of({{1, 1.0}, {2, 1.4}, {3, 0.9}});  // mean 1.1, deviation 0.2646
  ASSERT_EQ(decide(estimate, {0.9, 2}), Decision::undecided);
  const int repeats = repeats_to_decide(estimate, {0.9, 2});
  // scipy: t.ppf(0.975, n - 1) * 0.26457 / sqrt(n) is 0.2212 for n = 8 and 0.2034 for 9, 0.1893 for 10
  EXPECT_EQ(repeats, 10);
  EXPECT_GT(repeats_to_decide(estimate, {1.1, 2}), kMostRepeats);
}

TEST(Outliers, AreFarFromTheMedian) {
  EXPECT_THAT(outliers(std::vector<double>{1.0, 1.1, 0.9, 1.05, 2.4}), ElementsAre(4));
  EXPECT_THAT(outliers(std::vector<double>{1.0, 1.1, 0.9, 1.05, 1.2}), IsEmpty());
  EXPECT_THAT(outliers(std::vector<double>{1.0, 1.0, 9.0}), IsEmpty());  // too few to tell
}

TEST(Slope, IsThatOfLeastSquares) {
  const std::vector<double> x{std::log(10), std::log(50), std::log(100), std::log(500)};
  const std::vector<double> y{std::log(116), std::log(22), std::log(12), std::log(3)};
  EXPECT_NEAR(slope_of(x, y), -0.9324725932253176, 1e-12);
  EXPECT_FALSE(std::isfinite(slope_of(std::vector<double>{1.0, 1.0}, std::vector<double>{1.0, 2.0})));
}

}  // namespace
}  // namespace lockstep::statistics
