#include "schedule/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/temp_dir.h"
#include "lockstep/error.h"

namespace lockstep::schedule {
namespace {

std::vector<graph::ParameterInfo> parameters_of(const std::vector<int64_t>& counts) {
  std::vector<graph::ParameterInfo> infos;
  size_t offset = 0;
  for (const int64_t count : counts) {
    graph::ParameterInfo info;
    info.shape = Shape{count};
    info.offset = offset;
    offset += info.count();
    infos.push_back(info);
  }
  return infos;
}

std::vector<graph::ParameterInfo> random_parameters(std::mt19937& random) {
  std::vector<int64_t> counts(1 + random() % 12);
  for (auto& count : counts) count = 1 + static_cast<int64_t>(random() % (random() % 2 == 0 ? 20 : 5000));
  return parameters_of(counts);
}

size_t size_of(const std::vector<ParameterRange>& ranges) {
  size_t size = 0;
  for (const auto& range : ranges) size += range.count;
  return size;
}

TEST(Placement, EveryElementIsOnOneServer) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 500; ++trial) {
    const auto parameters = random_parameters(random);
    const int servers = 1 + static_cast<int>(random() % 9);
    for (const auto placement : {Placement::balanced, Placement::round_robin}) {
      std::vector<int> owners(parameters.back().offset + parameters.back().count());
      const auto placed = place(parameters, servers, placement);
      ASSERT_EQ(placed.size(), static_cast<size_t>(servers));
      for (const auto& ranges : placed) {
        size_t end = 0;
        for (const auto& range : ranges) {
          EXPECT_TRUE(range.count > 0 && range.offset >= end);
          end = range.offset + range.count;
          ASSERT_LE(end, owners.size());
          for (size_t i = range.offset; i < end; ++i) ++owners[i];
        }
      }
      ASSERT_TRUE(std::ranges::all_of(owners, [](int n) { return n == 1; })) << "trial " << trial;
    }
  }
}

TEST(Placement, BalancedPartsDifferByAtMostSixteenElementsAndAreCutAtWholeLines) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 500; ++trial) {
    const auto parameters = random_parameters(random);
    const auto placed = place(parameters, 1 + static_cast<int>(random() % 9), Placement::balanced);
    size_t least = SIZE_MAX;
    size_t most = 0;
    for (const auto& ranges : placed) {
      least = std::min(least, size_of(ranges));
      most = std::max(most, size_of(ranges));
      for (const auto& range : ranges) EXPECT_EQ(range.offset % 16, 0U);
    }
    EXPECT_LE(most - least, 16U);
  }
}

TEST(Placement, ServersBeyondTheElementsGetNone) {
  const auto placed = place(parameters_of({20}), 4, Placement::balanced);
  EXPECT_EQ(size_of(placed[0]), 16U);
  EXPECT_EQ(size_of(placed[1]), 4U);
  EXPECT_TRUE(placed[2].empty() && placed[3].empty());
}

TEST(Placement, RoundRobinPutsParameterIOnServerIModuloServers) {
  const auto parameters = parameters_of({5, 7, 100, 1, 30});
  const auto placed = place(parameters, 2, Placement::round_robin);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const ParameterRange whole{parameters[i].offset, parameters[i].count()};
    const auto slices = intersect(placed[i % 2], whole);
    ASSERT_EQ(slices.size(), 1U) << "parameter " << i;
    EXPECT_EQ(slices[0].global.count, whole.count);
    EXPECT_TRUE(intersect(placed[1 - i % 2], whole).empty());
  }
}

TEST(Placement, IntersectionsSayWhereTheyLieInTheShard) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    const auto parameters = random_parameters(random);
    const size_t count = parameters.back().offset + parameters.back().count();
    const ParameterRange within{random() % count, 1 + random() % count};
    size_t found = 0;
    for (const auto& ranges : place(parameters, 3, Placement::round_robin)) {
      std::vector<size_t> positions;
      for (const auto& range : ranges) {
        for (size_t i = 0; i < range.count; ++i) positions.push_back(range.offset + i);
      }
      for (const Slice& slice : intersect(ranges, within)) {
        for (size_t i = 0; i < slice.global.count; ++i) {
          ASSERT_EQ(positions.at(slice.local + i), slice.global.offset + i);
        }
        found += slice.global.count;
      }
    }
    EXPECT_EQ(found, std::min(within.count, count - within.offset));
  }
}

TEST(Placement, NamesAreParsedAndWrongOnesShown) {
  EXPECT_EQ(parse_placement("balanced"), Placement::balanced);
  EXPECT_EQ(parse_placement("round-robin"), Placement::round_robin);
  EXPECT_THAT(testing::message_of<UsageError>([] { parse_placement("robin"); }), ::testing::HasSubstr("'robin'"));
  EXPECT_THAT(testing::message_of<UsageError>([] { place(parameters_of({4}), 0, Placement::balanced); }),
              ::testing::HasSubstr("0 servers"));
}

}  // namespace
}  // namespace lockstep::schedule
