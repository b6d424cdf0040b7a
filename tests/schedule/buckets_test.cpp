#include "schedule/buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "lockstep/error.h"
#include "schedule/push_buckets.h"

namespace lockstep::schedule {
namespace {

TEST(Buckets, CoverTheParametersFromTheEndWithoutGaps) {
  for (const size_t count : {1, 15, 16, 17, 1000, 4096, 100'003}) {
    for (const size_t bytes : {0, 1, 64, 100, 4096, 1 << 20}) {
      const Buckets buckets(count, bytes);
      size_t end = count;
      for (size_t i = 0; i < buckets.size(); ++i) {
        const ParameterRange range = buckets.range(i);
        EXPECT_EQ(range.offset + range.count, end);
        EXPECT_GT(range.count, 0);
        EXPECT_LE(range.count * sizeof(float), std::max<size_t>(bytes, 64));
        EXPECT_EQ(range.offset % 16, 0) << "a bucket begins at a cache line";
        end = range.offset;
      }
      EXPECT_EQ(end, 0);
    }
  }
}

TEST(Buckets, OneOfEverythingIfItFits) {
  const Buckets buckets(1000, 1 << 20);
  ASSERT_EQ(buckets.size(), 1);
  EXPECT_EQ(buckets.range(0).count, 1000);
}

TEST(Buckets, NoParametersMakeOneEmptyBucket) {
  Buckets buckets(0, 1 << 20);
  ASSERT_EQ(buckets.size(), 1);
  EXPECT_EQ(buckets.range(0).count, 0);
  EXPECT_EQ(buckets.announced({0, 0}), 0);
}

TEST(Buckets, AreCompleteInTheirOrderOnly) {
  Buckets buckets(48, 64);
  ASSERT_EQ(buckets.size(), 3);
  EXPECT_EQ(buckets.announced({0, 16}), 0) << "the last bucket waits for those before it";
  EXPECT_EQ(buckets.announced({40, 8}), 0);
  EXPECT_EQ(buckets.announced({30, 10}), 1);
  EXPECT_EQ(buckets.announced({16, 14}), 2);
}

TEST(Buckets, ALargeParameterCompletesManyAtOnce) {
  Buckets buckets(160, 64);
  EXPECT_EQ(buckets.announced({8, 152}), 9);
  EXPECT_EQ(buckets.announced({0, 8}), 1);
}

TEST(Buckets, EveryOrderCompletesEachBucketOnceInEveryStep) {
  std::minstd_rand random(3);
  Buckets buckets(10'007, 1000);
  std::vector<ParameterRange> parameters;
  for (size_t offset = 0; offset < 10'007;) {
    const size_t count = std::min<size_t>(1 + random() % 900, 10'007 - offset);
    parameters.push_back({offset, count});
    offset += count;
  }
  for (int step = 0; step < 20; ++step) {
    std::shuffle(parameters.begin(), parameters.end(), random);
    buckets.begin();
    std::vector<bool> final_ones(10'007);
    size_t complete = 0;
    for (const ParameterRange& parameter : parameters) {
      std::fill_n(final_ones.begin() + static_cast<ptrdiff_t>(parameter.offset), parameter.count, true);
      complete += buckets.announced(parameter);
      // Only buckets from the end on with all their elements count.
      const auto gap = std::find(final_ones.rbegin(), final_ones.rend(), false);
      const auto whole = static_cast<size_t>(gap - final_ones.rbegin());
      for (size_t i = 0; i < buckets.size(); ++i) {
        EXPECT_EQ(i < complete, buckets.range(i).offset + whole >= 10'007) << i;
      }
    }
    EXPECT_EQ(complete, buckets.size());
  }
}

TEST(Buckets, RefuseWhatIsNotThereOrWasAnnounced) {
  Buckets buckets(100, 64);
  EXPECT_THROW(buckets.announced({90, 11}), UsageError);
  EXPECT_THROW(buckets.announced({static_cast<size_t>(-1), 2}), UsageError);
  buckets.announced({96, 4});
  EXPECT_THROW(buckets.announced({96, 4}), UsageError);
}

std::vector<ParameterRange> pushed(size_t bytes, const std::vector<ParameterRange>& announced, ParameterRange& rest) {
  std::vector<ParameterRange> sent;
  PushBuckets buckets(bytes);
  buckets.begin();
  for (const ParameterRange& range : announced) {
    buckets.announced(range, [&](ParameterRange bucket) { sent.push_back(bucket); });
  }
  rest = buckets.rest();
  return sent;
}

TEST(PushBuckets, JoinNeighboursUntilTheyAreLargeEnough) {
  ParameterRange rest;
  auto sent = pushed(400, {{200, 50}, {150, 50}, {100, 50}, {40, 60}, {0, 30}}, rest);
  ASSERT_EQ(sent.size(), 2);
  EXPECT_EQ(sent[0].offset, 150);
  EXPECT_EQ(sent[0].count, 100);
  EXPECT_EQ(sent[1].offset, 40);
  EXPECT_EQ(sent[1].count, 110);
  EXPECT_EQ(rest.offset, 0);
  EXPECT_EQ(rest.count, 30);
  sent = pushed(400, {{0, 10}, {20, 10}, {10, 5}}, rest);
  ASSERT_EQ(sent.size(), 2) << "a gap ends a bucket";
  EXPECT_EQ(sent[1].offset, 20);
  EXPECT_EQ(rest.offset, 10);
}

}  // namespace
}  // namespace lockstep::schedule
