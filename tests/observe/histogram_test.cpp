#include "observe/tensorboard/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace lockstep::observe {
namespace {

using ::testing::ElementsAre;

double total(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

std::vector<float> normal(size_t count) {
  std::mt19937 generator(7);
  std::normal_distribution<float> distribution(0.1F, 2.0F);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

/// Returns the largest difference between the values in (-inf, limit) and the buckets up to there.
double worst_difference(std::vector<float> values, const Histogram& histogram) {
  std::sort(values.begin(), values.end());
  double worst = 0;
  double so_far = 0;
  for (size_t i = 0; i < histogram.limits.size(); ++i) {
    so_far += histogram.counts[i];
    const auto limit = static_cast<float>(histogram.limits[i]);
    const auto below = std::lower_bound(values.begin(), values.end(), limit) - values.begin();
    worst = std::max(worst, std::fabs(so_far - static_cast<double>(below)));
  }
  return worst;
}

TEST(Histogram, SaysOfEachValueWhereItLies) {
  const std::vector<float> values{-3, -0.5F, 0, 1e-20F, 0.25F, 0.26F, 7};
  const Histogram histogram = histogram_of(values);
  EXPECT_EQ(histogram.min, -3);
  EXPECT_EQ(histogram.max, 7);
  EXPECT_EQ(histogram.num, 7);
  EXPECT_NEAR(histogram.sum, 4.01, 1e-6);
  EXPECT_NEAR(histogram.sum_squares, 9 + 0.25 + 0.0625 + 0.0676 + 49, 1e-6);
  EXPECT_THAT(histogram.counts, ElementsAre(1, 0, 1, 0, 2, 0, 2, 0, 1)) << "runs of empty buckets are one";
  EXPECT_THAT(histogram.limits, ElementsAre(-3, -0.5625, -0.5, -0x1p-40, 0x1p-40, 0.25, 0.28125, 7, 7.5));
}

TEST(Histogram, BucketsAscendAndAddUp) {
  const std::vector<float> values = normal(20'000);
  const Histogram histogram = histogram_of(values);
  EXPECT_EQ(histogram.num, 20'000);
  EXPECT_EQ(total(histogram.counts), 20'000);
  EXPECT_TRUE(std::is_sorted(histogram.limits.begin(), histogram.limits.end()));
  EXPECT_EQ(std::adjacent_find(histogram.limits.begin(), histogram.limits.end()), histogram.limits.end());
  EXPECT_EQ(histogram.min, *std::min_element(values.begin(), values.end()));
  EXPECT_EQ(histogram.max, *std::max_element(values.begin(), values.end()));
  EXPECT_GE(histogram.limits.back(), histogram.max);
  EXPECT_NEAR(histogram.sum, std::accumulate(values.begin(), values.end(), 0.0), 1e-6);
  EXPECT_LE(worst_difference(values, histogram), 1) << "only a negative limit itself may lie on either side";
}

TEST(Histogram, OfManyValuesASampleStandsForAll) {
  std::vector<float> values = normal(1'000'000);
  values[123'457] = -1000;
  values[999'999] = 1000;
  const Histogram histogram = histogram_of(values);
  EXPECT_EQ(histogram.min, -1000) << "of all values, also those that are not looked at";
  EXPECT_EQ(histogram.max, 1000);
  EXPECT_NEAR(histogram.num, 1e6, 1e-3);
  EXPECT_NEAR(total(histogram.counts), 1e6, 1e-3);
  EXPECT_NEAR(histogram.sum / histogram.num, 0.1, 0.05);
  EXPECT_LE(worst_difference(values, histogram), 0.01 * 1e6);
}

TEST(Histogram, WhatIsNoNumberIsLeftOut) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(histogram_of({}).num, 0);
  EXPECT_EQ(histogram_of(std::vector<float>{kNan, kNan}).num, 0);
  const Histogram histogram = histogram_of(std::vector<float>{kNan, 1, kInfinity, -kInfinity});
  EXPECT_EQ(histogram.num, 3);
  EXPECT_EQ(histogram.min, -std::numeric_limits<float>::max());
  EXPECT_EQ(histogram.max, std::numeric_limits<float>::max());
  EXPECT_EQ(total(histogram.counts), 3);
  for (const double limit : histogram.limits) EXPECT_TRUE(std::isfinite(limit));
}

TEST(Histogram, OfOneValueIsOneBucket) {
  EXPECT_THAT(histogram_of(std::vector<float>(5, 0.0F)).counts, ElementsAre(5));
  EXPECT_THAT(histogram_of(std::vector<float>(5, -2.0F)).counts, ElementsAre(5));
}

}  // namespace
}  // namespace lockstep::observe
