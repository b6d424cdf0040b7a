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

/// As in tf.data: the example at position i was among the first i + K read.
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

}  // namespace
}  // namespace lockstep::data
