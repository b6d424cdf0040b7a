#include "data/order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/temp_dir.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

using lockstep::testing::message_of;
using ::testing::HasSubstr;

std::vector<uint32_t> order_of(int64_t count, Shuffle shuffle, uint64_t seed, int64_t pass) {
  EpochOrder order(count, shuffle, seed);
  const auto indices = order.pass(pass);
  return {indices.begin(), indices.end()};
}

std::vector<uint32_t> sorted(std::vector<uint32_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<uint32_t> counting(size_t count) {
  std::vector<uint32_t> values(count);
  std::iota(values.begin(), values.end(), 0U);
  return values;
}

const std::vector<Shuffle> kShuffles{Shuffle::all(), Shuffle::none(), Shuffle::of_buffer(1), Shuffle::of_buffer(37),
                                     Shuffle::of_buffer(5000)};

TEST(EpochOrder, HasEveryExampleOnce) {
  for (const Shuffle shuffle : kShuffles) {
    for (const int64_t count : {1, 2, 100, 1000}) {
      EXPECT_EQ(sorted(order_of(count, shuffle, 3, 5)), counting(static_cast<size_t>(count)));
    }
  }
}

TEST(EpochOrder, DependsOnSeedAndPassAlone) {
  for (const Shuffle shuffle : {Shuffle::all(), Shuffle::of_buffer(37)}) {
    EpochOrder walked(1000, shuffle, 3);
    for (const int64_t pass : {0, 1, 2, 5, 1, 5}) {
      const auto indices = walked.pass(pass);
      EXPECT_EQ(std::vector<uint32_t>(indices.begin(), indices.end()), order_of(1000, shuffle, 3, pass));
    }
    EXPECT_NE(order_of(1000, shuffle, 3, 0), order_of(1000, shuffle, 3, 1));
    EXPECT_NE(order_of(1000, shuffle, 3, 0), order_of(1000, shuffle, 4, 0));
  }
}

TEST(EpochOrder, WithoutShuffleIsTheOrderOfTheData) {
  EXPECT_EQ(order_of(100, Shuffle::none(), 1, 3), counting(100));
  EXPECT_EQ(order_of(100, Shuffle::of_buffer(1), 1, 3), counting(100));
}

/// As tf.data: what comes out at position i was among the first i + K read.
TEST(EpochOrder, BufferLimitsHowFarAnExampleComesForward) {
  constexpr uint32_t kBuffer = 50;
  const auto order = order_of(2000, Shuffle::of_buffer(kBuffer), 1, 0);
  bool far = false;
  for (uint32_t i = 0; i < order.size(); ++i) {
    EXPECT_LT(order[i], i + kBuffer);
    far = far || i > order[i] + kBuffer;
  }
  EXPECT_TRUE(far) << "some examples stay in the buffer for long";
}

TEST(EpochOrder, FirstPositionIsUniform) {
  std::vector<int> seen(10);
  for (int64_t pass = 0; pass < 10'000; ++pass) ++seen.at(order_of(10, Shuffle::all(), 1, pass)[0]);
  for (const int count : seen) EXPECT_NEAR(count, 1000, 150);
}

TEST(Shuffle, ParsesWhatUsersWrite) {
  EXPECT_EQ(Shuffle::parse("all").kind, Shuffle::Kind::kAll);
  EXPECT_EQ(Shuffle::parse("none").kind, Shuffle::Kind::kNone);
  EXPECT_EQ(Shuffle::parse("10000").buffer, 10000);
  for (const char* bad : {"0", "-1", "some", "10x", ""}) {
    EXPECT_EQ(message_of<UsageError>([&] { Shuffle::parse(bad); }),
              std::string("shuffle '") + bad + "': all, none or a buffer size of at least 1 is allowed");
  }
}

TEST(BatchPlan, OneWorkerTakesConsecutiveBatches) {
  const BatchPlan plan(10, 4);
  ASSERT_EQ(plan.batches(), 3);
  EXPECT_EQ(plan.range(0).begin, 0);
  EXPECT_EQ(plan.range(1).begin, 4);
  EXPECT_EQ(plan.range(2).begin, 8);
  EXPECT_EQ(plan.range(2).end, 10);
}

TEST(BatchPlan, WorkersTakeSlicesOfTheSamePositions) {
  const BatchPlan second(100, 8, {1, 3});
  EXPECT_EQ(second.batches(), 5);
  EXPECT_EQ(second.global_range(1).begin, 24);
  EXPECT_EQ(second.range(1).begin, 32);
  EXPECT_EQ(second.range(1).size(), 8);
}

TEST(BatchPlan, EveryPositionOnceOverAllWorkers) {
  for (const int64_t examples : {7, 64, 100, 101, 1000}) {
    for (const int workers : {1, 2, 3, 7}) {
      for (const int64_t batch : {1, 2, 5, 16}) {
        if (batch * workers > examples) continue;
        std::vector<int> seen(static_cast<size_t>(examples));
        for (int worker = 0; worker < workers; ++worker) {
          const BatchPlan plan(examples, batch, {worker, workers});
          for (int64_t b = 0; b < plan.batches(); ++b) {
            const base::Range range = plan.range(b);
            EXPECT_LE(range.size(), batch);
            for (int64_t i = range.begin; i < range.end; ++i) ++seen.at(static_cast<size_t>(i));
          }
        }
        EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
      }
    }
  }
}

TEST(BatchPlan, SplitsTheShortBatchEvenly) {
  std::vector<int64_t> sizes;
  for (int worker = 0; worker < 4; ++worker) sizes.push_back(BatchPlan(18, 4, {worker, 4}).range(1).size());
  EXPECT_THAT(sizes, ::testing::ElementsAre(1, 1, 0, 0));
}

TEST(BatchPlan, RefusesWhatMakesNoSense) {
  const auto error = [](int64_t examples, int64_t batch, Shard shard) {
    return message_of<UsageError>([&] { BatchPlan(examples, batch, shard); });
  };
  EXPECT_EQ(error(100, 128, {}), "batch 128 is larger than the data set of 100 examples");
  EXPECT_EQ(error(100, 30, {0, 4}), "batch 30 times 4 workers = 120 is larger than the data set of 100 examples");
  EXPECT_EQ(error(100, 0, {}), "batch 0; at least 1 is allowed");
  EXPECT_EQ(error(0, 1, {}), "the data set is empty: there is nothing to make batches of");
  EXPECT_EQ(error(100, 1, {2, 2}), "shard 2 of 2: the index must be 0 to 1");
}

}  // namespace
}  // namespace lockstep::data
