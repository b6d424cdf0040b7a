// Groups over Gloo, beyond the conformance of all engines: every method of a sum, and its exact order.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <random>

#include "collective/gloo_groups.h"
#include "transport/convert.h"

namespace lockstep::collective {
namespace {

using testing::in_threads;
using testing::make_gloo_group;

using Group = std::vector<std::unique_ptr<Collective>>;
using Bytes = std::vector<std::byte>;

std::vector<float> numbers(size_t count, int rank) {
  std::vector<float> values(count);
  uint32_t state = static_cast<uint32_t>(rank) * 7919 + 17;
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = (static_cast<float>(state >> 8) * 0x1p-24F - 0.5F) * static_cast<float>(1 << (state % 7));
  }
  return values;
}

transport::Element wire(Element element) {
  switch (element) {
    case Element::bfloat16:
      return transport::Element::kBfloat16;
    case Element::float16:
      return transport::Element::kFloat16;
    default:
      return transport::Element::kFloat32;
  }
}

Bytes packed(const std::vector<float>& values, Element element) {
  Bytes bytes(values.size() * bytes_of(element));
  if (!values.empty()) transport::pack(wire(element), values, bytes);
  return bytes;
}

std::vector<float> unpacked(const Bytes& bytes, Element element) {
  std::vector<float> values(bytes.size() / bytes_of(element));
  if (!bytes.empty()) transport::unpack(wire(element), bytes, values);
  return values;
}

/// Returns the sum in the order of ranks, rounded after every addition.
Bytes expected_sum(size_t count, int size, Element element) {
  Bytes sum = packed(numbers(count, 0), element);
  for (int rank = 1; rank < size; ++rank) {
    std::vector<float> a = unpacked(sum, element);
    const std::vector<float> b = unpacked(packed(numbers(count, rank), element), element);
    for (size_t i = 0; i < count; ++i) a[i] += b[i];
    sum = packed(a, element);
  }
  return sum;
}

constexpr GroupOptions kCrowded{};
constexpr GroupOptions kSpinning{.spin = std::chrono::microseconds(20)};

void expect_sums(const Group& group) {
  const int size = group[0]->size();
  for (const size_t count : {0UL, 1UL, 3UL, 1000UL, 4097UL, 62500UL, 77777UL, 98304UL, 98305UL, 1000003UL}) {
    for (const Element element : {Element::float32, Element::bfloat16, Element::float16}) {
      const Bytes expected = expected_sum(count, size, element);
      in_threads(size, [&](int rank) {
        Bytes data = packed(numbers(count, rank), element);
        const auto result = group[static_cast<size_t>(rank)]->all_reduce(data.data(), count, element);
        ASSERT_TRUE(result) << result.failure().message();
        EXPECT_TRUE(data == expected) << count << " elements of " << bytes_of(element) << " bytes, rank " << rank;
      });
    }
  }
}

class GlooSizes : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(All, GlooSizes, ::testing::Values(1, 2, 3, 4));

TEST_P(GlooSizes, EveryoneGetsTheSumInTheOrderOfRanksToTheBit) {
  const int size = GetParam();
  // The method for a vector depends on its size and on whether members have their own cores; the sum does not.
  for (const GroupOptions& options : {kCrowded, kSpinning}) expect_sums(make_gloo_group(size, options));
}

TEST_P(GlooSizes, EveryoneGetsTheBytesOfAnyRoot) {
  const int size = GetParam();
  const Group group = make_gloo_group(size);
  for (const size_t count : {0UL, 1UL, 5000UL, 300001UL}) {
    for (int root = 0; root < size; ++root) {
      const Bytes expected = packed(numbers(count, root), Element::float32);
      in_threads(size, [&](int rank) {
        Bytes data = packed(numbers(count, rank), Element::float32);
        const auto result = group[static_cast<size_t>(rank)]->broadcast(data, root);
        ASSERT_TRUE(result) << result.failure().message();
        EXPECT_TRUE(data == expected);
      });
    }
  }
}

TEST_P(GlooSizes, BlocksAreGatheredInTheOrderOfRanks) {
  const int size = GetParam();
  const Group group = make_gloo_group(size);
  for (const size_t count : {0UL, 1UL, 100UL, 100001UL}) {
    Bytes expected;
    for (int rank = 0; rank < size; ++rank) {
      const Bytes block = packed(numbers(count, rank), Element::bfloat16);
      expected.insert(expected.end(), block.begin(), block.end());
    }
    in_threads(size, [&](int rank) {
      Bytes all(expected.size());
      const auto result =
          group[static_cast<size_t>(rank)]->all_gather(packed(numbers(count, rank), Element::bfloat16), all);
      ASSERT_TRUE(result) << result.failure().message();
      EXPECT_TRUE(all == expected);
    });
  }
}

TEST_P(GlooSizes, NobodyPassesABarrierBeforeAllHaveCome) {
  const int size = GetParam();
  const Group group = make_gloo_group(size);
  std::atomic<int> come{0};
  in_threads(size, [&](int rank) {
    for (int round = 1; round <= 200; ++round) {
      ++come;
      ASSERT_TRUE(group[static_cast<size_t>(rank)]->barrier());
      EXPECT_GE(come.load(), round * size);
      ASSERT_TRUE(group[static_cast<size_t>(rank)]->barrier());
    }
  });
}

/// Data sent before the others read must fit into the buffers.
TEST_P(GlooSizes, MembersMayBeAheadOfEachOther) {
  const int size = GetParam();
  for (const GroupOptions& options : {kCrowded, kSpinning}) {
    const Group group = make_gloo_group(size, options);
    in_threads(size, [&](int rank) {
      Collective& member = *group[static_cast<size_t>(rank)];
      std::minstd_rand pauses(static_cast<unsigned>(rank + 1));
      std::minstd_rand plan(1);
      for (int i = 0; i < 30; ++i) {
        const size_t count = size_t{1} << (plan() % 20);
        std::vector<float> data(count, 1.0F);
        std::vector<float> all(count * static_cast<size_t>(size));
        const auto kind = plan() % 3;
        if (pauses() % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(pauses() % 20));
        const auto result =
            kind == 0   ? member.all_reduce(data)
            : kind == 1 ? member.broadcast(std::as_writable_bytes(std::span(data)), i % size)
                        : member.all_gather(std::as_bytes(std::span(data)), std::as_writable_bytes(std::span(all)));
        ASSERT_TRUE(result) << result.failure().message();
        EXPECT_EQ(data.back(), kind == 0 ? static_cast<float>(size) : 1.0F);
        if (kind == 2) {
          EXPECT_EQ(all.back(), 1.0F);
        }
      }
    });
  }
}

/// Returns whole numbers, whose sums of a few members are exact in every order.
std::vector<float> whole_numbers(size_t count, int rank) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>((i * 7 + static_cast<size_t>(rank) * 13) % 11);
  return values;
}

/// Groups in which not all are connected with all. All members are in one process here, where many sockets make it
/// likely that a port is used again; schedule_test has every size.
class LargeGloo : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(All, LargeGloo, ::testing::Values(9, 12));

TEST_P(LargeGloo, EveryoneGetsTheSameSumsByEveryMethod) {
  const int size = GetParam();
  for (const GroupOptions& options : {kCrowded, kSpinning}) {
    const Group group = make_gloo_group(size, options);
    for (const size_t count : {0UL, 1UL, 100UL, 4097UL, 65537UL, 300007UL}) {
      std::vector<float> expected(count);
      for (int rank = 0; rank < size; ++rank) {
        const std::vector<float> values = whole_numbers(count, rank);
        for (size_t i = 0; i < count; ++i) expected[i] += values[i];
      }
      std::vector<std::vector<float>> rounded(static_cast<size_t>(size));
      in_threads(size, [&](int rank) {
        Collective& member = *group[static_cast<size_t>(rank)];
        std::vector<float> data = whole_numbers(count, rank);
        ASSERT_TRUE(member.all_reduce(data));
        EXPECT_TRUE(data == expected) << count << " elements, rank " << rank;
        Bytes halves = packed(numbers(count, rank), Element::bfloat16);
        Bytes again = halves;
        ASSERT_TRUE(member.all_reduce(halves.data(), count, Element::bfloat16));
        ASSERT_TRUE(member.all_reduce(again.data(), count, Element::bfloat16));
        EXPECT_TRUE(halves == again) << count << " elements";
        rounded[static_cast<size_t>(rank)] = unpacked(halves, Element::bfloat16);
      });
      for (const std::vector<float>& one : rounded) EXPECT_TRUE(one == rounded[0]) << count << " elements";
    }
  }
}

TEST_P(LargeGloo, MembersMayBeAheadOfEachOther) {
  const int size = GetParam();
  const Group group = make_gloo_group(size);
  in_threads(size, [&](int rank) {
    Collective& member = *group[static_cast<size_t>(rank)];
    std::minstd_rand pauses(static_cast<unsigned>(rank + 1));
    std::minstd_rand plan(1);
    for (int i = 0; i < 24; ++i) {
      const size_t count = size_t{1} << (plan() % 18);
      const std::vector<float> mine = whole_numbers(count, rank);
      if (pauses() % 4 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(pauses() % 10));
      switch (i % 4) {
        case 0: {
          std::vector<float> data = mine;
          ASSERT_TRUE(member.broadcast(std::as_writable_bytes(std::span(data)), i % size));
          EXPECT_TRUE(data == whole_numbers(count, i % size));
          break;
        }
        case 1: {
          std::vector<float> all(count * static_cast<size_t>(size));
          ASSERT_TRUE(member.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all))));
          for (int from = 0; from < size; ++from) {
            const auto block = std::span(all).subspan(count * static_cast<size_t>(from), count);
            EXPECT_TRUE(std::ranges::equal(block, whole_numbers(count, from))) << "block of rank " << from;
          }
          break;
        }
        case 2: {
          std::vector<float> data = mine;
          ASSERT_TRUE(member.all_reduce(data));
          break;
        }
        default:
          ASSERT_TRUE(member.barrier());
      }
    }
  });
}

TEST_P(LargeGloo, NobodyPassesABarrierBeforeAllHaveCome) {
  const int size = GetParam();
  const Group group = make_gloo_group(size);
  std::atomic<int> come{0};
  in_threads(size, [&](int rank) {
    for (int round = 1; round <= 20; ++round) {
      ++come;
      ASSERT_TRUE(group[static_cast<size_t>(rank)]->barrier());
      EXPECT_GE(come.load(), round * size);
      ASSERT_TRUE(group[static_cast<size_t>(rank)]->barrier());
    }
  });
}

TEST(Gloo, OneGroupFollowsAnother) {
  for (int i = 0; i < 3; ++i) {
    const Group group = make_gloo_group(3);
    in_threads(3, [&](int rank) {
      std::vector<float> data(1000, static_cast<float>(rank + i));
      ASSERT_TRUE(group[static_cast<size_t>(rank)]->all_reduce(data));
      EXPECT_EQ(data[999], static_cast<float>(3 + 3 * i));
    });
  }
}

TEST(Gloo, CountsWhatItMoves) {
  const Group group = make_gloo_group(2);
  const Traffic before = group[0]->traffic();
  in_threads(2, [&](int rank) {
    std::vector<float> data(1'000'000, 1.0F);
    ASSERT_TRUE(group[static_cast<size_t>(rank)]->all_reduce(data));
  });
  EXPECT_EQ(group[0]->traffic().sent - before.sent, 4'000'000U);
  EXPECT_EQ(group[0]->traffic().received - before.received, 4'000'000U);
}

TEST(Gloo, AMeterCountsWhatItMoves) {
  base::TrafficMeter meter;
  const Group group = make_gloo_group(2, {.meter = &meter});
  in_threads(2, [&](int rank) {
    std::vector<float> data(1000, 1.0F);
    ASSERT_TRUE(group[static_cast<size_t>(rank)]->all_reduce(data));
  });
  EXPECT_EQ(meter.totals().sent_bytes, group[0]->traffic().sent + group[1]->traffic().sent);
  EXPECT_EQ(meter.totals().received_bytes, group[0]->traffic().received + group[1]->traffic().received);
  EXPECT_GT(meter.totals().sent_messages, 2U);
}

}  // namespace
}  // namespace lockstep::collective
