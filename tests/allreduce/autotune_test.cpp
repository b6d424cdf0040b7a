#include "allreduce/autotune.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <set>

namespace lockstep::allreduce {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;
constexpr size_t kAlexnet = 244 * 1000 * 1000;
constexpr size_t kDefault = 25 * kMegabyte;

/// Trains until a size is chosen; `cost` receives the bucket size and the step.
size_t tuned(Autotune& tune, const std::function<double(size_t, size_t)>& cost) {
  size_t steps = 0;
  for (; !tune.done() && steps < 1000; ++steps) tune.step(cost(tune.bucket_bytes(), steps));
  EXPECT_EQ(steps, tune.steps());
  return tune.bucket_bytes();
}

/// Each bucket has a latency, and the last one cannot be overlapped.
double network(size_t bytes, double latency, double bytes_per_second) {
  const double part = static_cast<double>(std::min(bytes, kAlexnet));
  return 0.1 + latency * static_cast<double>(kAlexnet) / part + part / bytes_per_second;
}

TEST(Autotune, FindsTheBestSizeOfACostCurve) {
  Autotune slow_start(kAlexnet, kDefault);
  EXPECT_EQ(tuned(slow_start, [](size_t bytes, size_t) { return network(bytes, 1e-6, 1e9); }), kMegabyte / 4);
  Autotune between(kAlexnet, kDefault);
  EXPECT_EQ(tuned(between, [](size_t bytes, size_t) { return network(bytes, 1e-3, 1e9); }), 16 * kMegabyte);
  Autotune dear_start(kAlexnet, kDefault);
  EXPECT_EQ(tuned(dear_start, [](size_t bytes, size_t) { return network(bytes, 1.0, 1e9); }), kAlexnet);
}

TEST(Autotune, NoiseAndOutliersDoNotChangeTheChoice) {
  std::minstd_rand random(7);
  for (int trial = 0; trial < 100; ++trial) {
    Autotune tune(kAlexnet, kDefault);
    const auto cost = [&](size_t bytes, size_t) {
      const double noise = 1 + 0.02 * (static_cast<double>(random() % 1000) / 1000 - 0.5);
      const double outlier = random() % 10 == 0 ? 5.0 : 0.0;  // a checkpoint, another program
      return (bytes == 4 * kMegabyte ? 1.0 : 1.2) * noise + outlier;
    };
    EXPECT_EQ(tuned(tune, cost), 4 * kMegabyte);
  }
}

TEST(Autotune, TheFirstStepAfterAChangeDoesNotCount) {
  Autotune tune(kAlexnet, kDefault);
  size_t before = 0;
  int since = 0;
  const auto cost = [&](size_t bytes, size_t) {
    since = bytes == before ? since + 1 : 0;
    before = bytes;
    // If the first step counted, half of the steps would be slow.
    return bytes == kMegabyte ? (since < 3 ? 1000.0 : 0.5) : 1.0;
  };
  EXPECT_EQ(tuned(tune, cost), kMegabyte);
}

TEST(Autotune, ASlowBeginningDoesNotDecide) {
  Autotune tune(kAlexnet, kDefault);
  // All steps are slower while caches fill, during the first turn of the default and the next size.
  const auto cost = [](size_t bytes, size_t step) { return (bytes == kDefault ? 1.0 : 1.1) + (step < 11 ? 0.5 : 0.0); };
  EXPECT_EQ(tuned(tune, cost), kDefault);
}

TEST(Autotune, KeepsTheDefaultWhereNothingIsBetter) {
  Autotune tune(kAlexnet, kDefault);
  EXPECT_EQ(tuned(tune, [](size_t bytes, size_t) { return bytes == kMegabyte ? 0.995 : 1.0; }), kDefault);
}

TEST(Autotune, TriesOnlySizesThatMakeADifference) {
  Autotune tune(2 * kMegabyte, kDefault);
  std::set<size_t> tried;
  tuned(tune, [&](size_t bytes, size_t) {
    tried.insert(std::min(bytes, 2 * kMegabyte));
    return 1.0;
  });
  EXPECT_EQ(tried, (std::set<size_t>{kMegabyte / 4, kMegabyte, 2 * kMegabyte}));
  Autotune small(31'400, kDefault);
  EXPECT_TRUE(small.done());
  EXPECT_EQ(small.steps(), 0);
  EXPECT_EQ(small.bucket_bytes(), kDefault);
}

TEST(Autotune, MembersWithTheSameNumbersDecideAlikeAtEveryStep) {
  std::minstd_rand random(11);
  Autotune one(kAlexnet, kDefault);
  Autotune other(kAlexnet, kDefault);
  while (!one.done()) {
    ASSERT_EQ(one.bucket_bytes(), other.bucket_bytes());
    const double seconds = static_cast<double>(random() % 1000);
    one.step(seconds);
    other.step(seconds);
  }
  EXPECT_TRUE(other.done());
  EXPECT_EQ(one.bucket_bytes(), other.bucket_bytes());
}

TEST(Autotune, TimesThatAreNoNumbersCountAsTheWorst) {
  Autotune tune(kAlexnet, kDefault);
  EXPECT_EQ(tuned(tune, [](size_t bytes, size_t) { return bytes == kMegabyte ? 2.0 : NAN; }), kMegabyte);
}

}  // namespace
}  // namespace lockstep::allreduce
