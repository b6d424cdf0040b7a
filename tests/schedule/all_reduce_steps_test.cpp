// Steps of groups whose members are connected with few others, played without a network for every size up to 130.
#include "schedule/all_reduce_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>

#include "schedule/all_reduce_way.h"

namespace lockstep::schedule {
namespace {

constexpr int kLargest = 130;

using Values = std::vector<uint64_t>;  // one per share
using Steps = std::function<std::vector<Step>(int rank, int size)>;

/// Returns a number that a rank has for a share; sums of different ones differ.
uint64_t value_of(int rank, size_t share) {
  return (static_cast<uint64_t>(rank) + 1) * 0x9E3779B97F4A7C15ULL ^ (share + 7) * 0xBF58476D1CE4E5B9ULL;
}

/// Plays the steps of all members, in an order in which each runs as far as it can, and checks that they only talk to
/// their neighbours. Returns false if they wait for each other forever or leave a message unread.
bool play(const Steps& steps_of, std::vector<Values>& data) {
  const auto size = static_cast<int>(data.size());
  std::map<std::pair<int, int>, std::deque<Values>> on_the_way;
  std::vector<std::vector<Step>> steps;
  std::vector<size_t> next(data.size(), 0);
  std::vector<bool> sent(data.size(), false);
  for (int rank = 0; rank < size; ++rank) steps.push_back(steps_of(rank, size));
  const auto advance = [&](int rank) {
    const auto i = static_cast<size_t>(rank);
    const Step& step = steps[i][next[i]];
    if (!sent[i] && !step.out.empty()) {
      const auto begin = data[i].begin();
      on_the_way[{rank, step.peer}].emplace_back(begin + static_cast<long>(step.out.begin),
                                                 begin + static_cast<long>(step.out.end));
    }
    sent[i] = true;
    if (!step.in.empty()) {
      auto& queue = on_the_way[{step.peer, rank}];
      if (queue.empty()) return false;
      const Values message = queue.front();
      queue.pop_front();
      if (message.size() != step.in.end - step.in.begin) return false;
      for (size_t at = 0; at < message.size(); ++at) {
        uint64_t& mine = data[i][step.in.begin + at];
        mine = step.adds ? mine + message[at] : message[at];
      }
    }
    sent[i] = false;
    ++next[i];
    return true;
  };
  for (bool moves = true; moves;) {
    moves = false;
    for (int rank = size - 1; rank >= 0; --rank) {
      while (next[static_cast<size_t>(rank)] < steps[static_cast<size_t>(rank)].size() && advance(rank)) moves = true;
    }
  }
  for (size_t i = 0; i < data.size(); ++i) {
    if (next[i] < steps[i].size()) return false;
    for (const Step& step : steps[i]) {
      const unsigned bits = static_cast<unsigned>(step.peer) ^ static_cast<unsigned>(i);
      if (!std::has_single_bit(bits) || step.peer >= size) return false;
    }
  }
  return std::all_of(on_the_way.begin(), on_the_way.end(), [](const auto& queue) { return queue.second.empty(); });
}

std::vector<Values> own_values(int size, size_t shares) {
  std::vector<Values> data;
  for (int rank = 0; rank < size; ++rank) {
    for (size_t share = 0; share < shares; ++share) {
      if (share == 0) data.emplace_back();
      data.back().push_back(value_of(rank, share));
    }
  }
  return data;
}

void expect_sums(const Steps& steps, int size, size_t shares) {
  std::vector<Values> data = own_values(size, shares);
  ASSERT_TRUE(play(steps, data)) << size << " members";
  for (size_t share = 0; share < shares; ++share) {
    uint64_t sum = 0;
    for (int rank = 0; rank < size; ++rank) sum += value_of(rank, share);
    for (const Values& values : data) ASSERT_EQ(values[share], sum) << size << " members, share " << share;
  }
}

TEST(AllReduceSteps, EverySumHasEachMemberOnceAtEverySize) {
  for (int size = 1; size <= kLargest; ++size) {
    expect_sums(sum_through_tree, size, 1);
    expect_sums(sum_by_halves, size, shares_by_halves(size));
  }
}

TEST(AllReduceSteps, ABroadcastReachesAllFromEveryRoot) {
  for (int size = 1; size <= kLargest; ++size) {
    for (int root = 0; root < size; root += size <= 20 ? 1 : 1 + size / 5) {
      std::vector<Values> data = own_values(size, 1);
      ASSERT_TRUE(play([&](int rank, int all) { return broadcast_through_tree(rank, all, root); }, data));
      for (const Values& values : data) ASSERT_EQ(values[0], value_of(root, 0)) << size << " members, root " << root;
    }
  }
}

TEST(AllReduceSteps, AGatherBringsEveryShareToAll) {
  for (int size = 1; size <= kLargest; ++size) {
    const auto count = static_cast<size_t>(size);
    std::vector<Values> data(count, Values(count, 0));
    for (size_t rank = 0; rank < count; ++rank) data[rank][rank] = value_of(static_cast<int>(rank), 0);
    ASSERT_TRUE(play(gather_by_doubling, data)) << size << " members";
    for (size_t rank = 0; rank < count; ++rank) {
      for (const Values& values : data) ASSERT_EQ(values[rank], value_of(static_cast<int>(rank), 0));
    }
  }
}

TEST(AllReduceSteps, NeighboursAreMutualAndGrowWithTheLogarithm) {
  for (int size = 1; size <= kLargest; ++size) {
    for (int rank = 0; rank < size; ++rank) {
      const std::vector<int> mine = all_reduce_neighbours(rank, size);
      const int most = size <= kAllReduceMesh ? size - 1 : std::bit_width(static_cast<unsigned>(size - 1));
      EXPECT_LE(static_cast<int>(mine.size()), most);
      for (int bit = 1; bit < size; bit *= 2) {
        if ((rank ^ bit) >= size) continue;
        EXPECT_TRUE(std::binary_search(mine.begin(), mine.end(), rank ^ bit)) << rank << " in a group of " << size;
      }
      for (const int peer : mine) {
        const std::vector<int> theirs = all_reduce_neighbours(peer, size);
        EXPECT_TRUE(std::binary_search(theirs.begin(), theirs.end(), rank)) << rank << " and " << peer;
      }
    }
  }
}

TEST(AllReduceWays, OnlyLargeGroupsUseSteps) {
  for (const size_t bytes : {size_t{4}, size_t{100'000}, size_t{10'000'000}}) {
    for (const bool crowded : {false, true}) {
      for (size_t members = 2; members <= 8; ++members) {
        const AllReduceWay way = all_reduce_way(bytes, members, crowded);
        EXPECT_TRUE(way != AllReduceWay::through_tree && way != AllReduceWay::by_halves);
      }
      const AllReduceWay way = all_reduce_way(bytes, 9, crowded);
      EXPECT_TRUE(way == AllReduceWay::through_tree || way == AllReduceWay::by_halves);
    }
  }
}

/// The volume is that of a member that does most: here it is counted from the steps.
TEST(AllReduceWays, TheVolumeOfALargeGroupIsThatOfItsSteps) {
  const size_t bytes = 16'000'000;
  for (const int size : {9, 16, 31, 64, 100, 128}) {
    const size_t shares = shares_by_halves(size);
    double most = 0;
    for (int rank = 0; rank < size; ++rank) {
      double sent = 0;
      for (const Step& step : sum_by_halves(rank, size)) sent += static_cast<double>(step.out.end - step.out.begin);
      most = std::max(most, sent * static_cast<double>(bytes) / static_cast<double>(shares));
    }
    EXPECT_NEAR(all_reduce_volume(bytes, static_cast<size_t>(size), false).sent, most, 1) << size;
    double tree = 0;
    for (const Step& step : sum_through_tree(0, size)) tree += static_cast<double>(step.out.end - step.out.begin);
    EXPECT_NEAR(all_reduce_volume(1000, static_cast<size_t>(size), false).sent, tree * 1000, 1) << size;
  }
}

}  // namespace
}  // namespace lockstep::schedule
