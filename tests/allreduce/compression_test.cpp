#include "allreduce/compression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "lockstep/error.h"

namespace lockstep::allreduce {
namespace {

std::vector<SparseElement> select(TopK& top, size_t offset, const std::vector<float>& gradients) {
  std::vector<SparseElement> elements(top.kept(gradients.size()), {0xffffffffU, -1});
  top.select(offset, gradients, elements);
  return elements;
}

std::vector<uint32_t> indices(const std::vector<SparseElement>& elements) {
  std::vector<uint32_t> all;
  for (const SparseElement& element : elements) all.push_back(element.index);
  return all;
}

/// Finds the largest by sorting everything.
std::vector<uint32_t> largest(const std::vector<float>& values, size_t k) {
  std::vector<uint32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return std::fabs(values[a]) > std::fabs(values[b]); });
  order.resize(k);
  std::sort(order.begin(), order.end());
  return order;
}

std::vector<float> random_gradients(std::minstd_rand& random, size_t count, int distinct) {
  std::vector<float> values(count);
  for (float& value : values) {
    const int level = static_cast<int>(random() % static_cast<uint32_t>(2 * distinct + 1)) - distinct;
    value = std::ldexp(static_cast<float>(level), static_cast<int>(random() % 8) - 20);
  }
  return values;
}

TEST(TopK, SendsTheLargestAndAmongEqualsTheFirst) {
  std::minstd_rand random(1);
  for (const double share : {0.001, 0.01, 0.1, 0.5, 1.0}) {
    for (const size_t count : {size_t{1}, size_t{2}, size_t{100}, size_t{20'000}}) {
      for (const int distinct : {0, 1, 3, 1 << 20}) {
        TopK top(count, share);
        const std::vector<float> gradients = random_gradients(random, count, distinct);
        const auto sent = select(top, 0, gradients);
        EXPECT_EQ(indices(sent), largest(gradients, top.kept(count))) << share << " of " << count;
        for (const SparseElement& element : sent) EXPECT_EQ(element.value, gradients[element.index]);
      }
    }
  }
}

TEST(TopK, SendsAtLeastOneAndNothingOfNothing) {
  TopK top(1000, 0.001);
  EXPECT_EQ(top.kept(1000), 1);
  EXPECT_EQ(top.kept(10), 1);
  EXPECT_EQ(top.kept(0), 0);
  EXPECT_EQ(top.kept(2000), 2);
  EXPECT_TRUE(select(top, 1000, {}).empty());
}

TEST(TopK, EverythingThatIsNotSentIsFedBack) {
  // Whole numbers, so sums are exact: sent and held-back elements together equal the input.
  std::minstd_rand random(2);
  constexpr size_t kCount = 500;
  TopK top(kCount, 0.02);
  std::vector<float> came(kCount);
  std::vector<float> sent(kCount);
  for (int step = 0; step < 200; ++step) {
    std::vector<float> gradients(kCount);
    for (size_t i = 0; i < kCount; ++i) {
      gradients[i] = static_cast<float>(random() % 17) - 8;
      came[i] += gradients[i];
    }
    const std::vector<float> before(top.errors().begin(), top.errors().end());
    for (const SparseElement& element : select(top, 0, gradients)) {
      EXPECT_EQ(element.value, before[element.index] + gradients[element.index]);
      EXPECT_EQ(top.errors()[element.index], 0);
      sent[element.index] += element.value;
    }
    for (size_t i = 0; i < kCount; ++i) ASSERT_EQ(sent[i] + top.errors()[i], came[i]) << i << " in step " << step;
  }
}

TEST(TopK, SmallElementsGrowUntilTheirTurnComes) {
  constexpr size_t kCount = 500;
  TopK top(kCount, 0.02);
  std::vector<int> turns(kCount);
  for (int step = 0; step < 50; ++step) {
    for (const SparseElement& element : select(top, 0, std::vector<float>(kCount, 1))) ++turns[element.index];
  }
  EXPECT_THAT(turns, ::testing::Each(1));
}

TEST(TopK, AShareOfOneIsThePlainSum) {
  std::minstd_rand random(3);
  constexpr size_t kCount = 1003;
  std::vector<float> expected(kCount);
  std::vector<SparseElement> everyones;
  for (int rank = 0; rank < 3; ++rank) {
    TopK top(kCount, 1);
    const std::vector<float> gradients = random_gradients(random, kCount, 1 << 20);
    for (size_t i = 0; i < kCount; ++i) expected[i] += gradients[i];
    const auto sent = select(top, 0, gradients);
    everyones.insert(everyones.end(), sent.begin(), sent.end());
    EXPECT_THAT(top.errors(), ::testing::Each(0.0F));
  }
  std::vector<float> sum(kCount, 99);
  add_up(everyones, sum);
  EXPECT_EQ(sum, expected);
}

TEST(TopK, BucketsKeepTheirErrorsApart) {
  TopK top(8, 0.25);
  EXPECT_EQ(indices(select(top, 4, {1, 4, 2, 3})), std::vector<uint32_t>{1});
  EXPECT_EQ(indices(select(top, 0, {5, 6, 7, 8})), std::vector<uint32_t>{3});
  EXPECT_THAT(top.errors(), ::testing::ElementsAre(5, 6, 7, 0, 1, 0, 2, 3));
  EXPECT_EQ(indices(select(top, 4, {0, 0, 0, 0})), std::vector<uint32_t>{3});
  top.reset();
  EXPECT_THAT(top.errors(), ::testing::Each(0.0F));
}

TEST(TopK, WhatIsNotANumberIsSentFirst) {
  TopK top(4, 0.25);
  const auto sent = select(top, 0, {1, std::numeric_limits<float>::infinity(), NAN, 3});
  ASSERT_EQ(indices(sent), std::vector<uint32_t>{2});
  EXPECT_TRUE(std::isnan(sent[0].value));
}

TEST(TopK, RefusesAShareThatIsNoneAndAnIndexBeyondTheBucket) {
  for (const double share : {0.0, -0.1, 1.1, static_cast<double>(NAN)}) EXPECT_THROW(TopK(10, share), UsageError);
  std::vector<float> sum(10);
  const SparseElement beyond{10, 1};
  EXPECT_THROW(add_up({&beyond, 1}, sum), DataError);
}

}  // namespace
}  // namespace lockstep::allreduce
