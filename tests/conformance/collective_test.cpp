// The contract of every engine of collective operations: one body, run by each member of a group, for every engine.
#include "collective/collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "conformance/collective_group.h"
#include "transport/convert.h"

namespace lockstep::collective {
namespace {

using ::testing::HasSubstr;

constexpr size_t kCounts[] = {0, 1, 2, 3, 17, 1000, 62500, 1000003};
constexpr Element kElements[] = {Element::float32, Element::bfloat16, Element::float16};

class Collectives : public ::testing::TestWithParam<Arrangement> {
 protected:
  static void run(const std::function<void(Collective&)>& body, GroupOptions options = {Seconds(120), {}}) {
    run_group(GetParam(), options, body);
  }
};

/// The last rank stays away. The group of a process job can be used only once after that.
class CollectiveFailures : public Collectives {};

transport::Element wire(Element element) {
  if (element == Element::float32) return transport::Element::kFloat32;
  return element == Element::bfloat16 ? transport::Element::kBfloat16 : transport::Element::kFloat16;
}

std::vector<std::byte> packed(Element element, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * bytes_of(element));
  transport::pack(wire(element), values, bytes);
  return bytes;
}

std::vector<float> unpacked(Element element, const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / bytes_of(element));
  transport::unpack(wire(element), bytes, values);
  return values;
}

/// Returns small whole numbers: sums of four are exact in every element and in any order.
float whole_number(int rank, size_t i) {
  return static_cast<float>((i * 7 + static_cast<size_t>(rank) * 13) % 101) - 50;
}

std::vector<float> random_values(int rank, size_t count, uint32_t salt = 0) {
  std::minstd_rand random(static_cast<uint32_t>(rank) * 7919 + 17 + salt);
  std::vector<float> values(count);
  for (float& value : values) value = std::ldexp(static_cast<float>(random() % 4096) - 2048, -11);
  return values;
}

void expect_sum(Collective& group, size_t count, Element element) {
  std::vector<float> mine(count);
  std::vector<float> sum(count);
  for (size_t i = 0; i < count; ++i) {
    mine[i] = whole_number(group.rank(), i);
    for (int rank = 0; rank < group.size(); ++rank) sum[i] += whole_number(rank, i);
  }
  std::vector<std::byte> data = packed(element, mine);
  const auto done = group.all_reduce(data.data(), count, element);
  ASSERT_TRUE(done) << done.failure().message();
  EXPECT_TRUE(unpacked(element, data) == sum) << count << " elements of " << bytes_of(element) << " bytes";
}

TEST_P(Collectives, AMemberKnowsItsPlace) {
  run([](Collective& group) {
    EXPECT_EQ(group.engine(), GetParam().engine);
    EXPECT_EQ(group.size(), GetParam().size);
    EXPECT_GE(group.rank(), 0);
    EXPECT_LT(group.rank(), group.size());
  });
}

TEST_P(Collectives, AllReduceAddsUpEveryonesElements) {
  run([](Collective& group) {
    for (const Element element : kElements) {
      for (const size_t count : kCounts) expect_sum(group, count, element);
    }
  });
}

TEST_P(Collectives, EveryoneGetsTheSameBitsInEveryRun) {
  run([](Collective& group) {
    for (const Element element : kElements) {
      for (const size_t count : {size_t{3}, size_t{1000}, size_t{62501}}) {
        const std::vector<std::byte> mine = packed(element, random_values(group.rank(), count));
        std::vector<std::byte> first = mine;
        std::vector<std::byte> second = mine;
        ASSERT_TRUE(group.all_reduce(first.data(), count, element));
        ASSERT_TRUE(group.all_reduce(second.data(), count, element));
        EXPECT_TRUE(first == second);
        std::vector<std::byte> all(first.size() * static_cast<size_t>(group.size()));
        ASSERT_TRUE(group.all_gather(first, all));
        for (size_t rank = 0; rank < static_cast<size_t>(group.size()); ++rank) {
          EXPECT_EQ(std::memcmp(all.data() + rank * first.size(), first.data(), first.size()), 0) << "rank " << rank;
        }
      }
    }
  });
}

TEST_P(Collectives, HalvesAreRoundedOncePerAddition) {
  run([](Collective& group) {
    constexpr size_t kCount = 20000;
    for (const Element element : {Element::bfloat16, Element::float16}) {
      std::vector<std::byte> data = packed(element, random_values(group.rank(), kCount));
      std::vector<float> exact(kCount);
      std::vector<float> largest(kCount);
      for (int rank = 0; rank < group.size(); ++rank) {
        const auto theirs = unpacked(element, packed(element, random_values(rank, kCount)));
        for (size_t i = 0; i < kCount; ++i) {
          exact[i] += theirs[i];
          largest[i] += std::fabs(theirs[i]);
        }
      }
      ASSERT_TRUE(group.all_reduce(data.data(), kCount, element));
      const std::vector<float> sum = unpacked(element, data);
      const float half_unit = element == Element::bfloat16 ? 0x1p-8F : 0x1p-11F;
      for (size_t i = 0; i < kCount; ++i) {
        const float allowed = half_unit * 1.01F * largest[i] * static_cast<float>(group.size() - 1);
        ASSERT_NEAR(sum[i], exact[i], allowed) << i;
      }
    }
  });
}

TEST_P(Collectives, BroadcastGivesTheBytesOfEachRoot) {
  run([](Collective& group) {
    for (int root = 0; root < group.size(); ++root) {
      for (const size_t count : {size_t{0}, size_t{1}, size_t{13}, size_t{250'000}, size_t{4'000'003}}) {
        std::vector<std::byte> data(count);
        for (size_t i = 0; i < count; ++i) data[i] = static_cast<std::byte>(i * 31 + static_cast<size_t>(group.rank()));
        const auto done = group.broadcast(data, root);
        ASSERT_TRUE(done) << done.failure().message();
        bool right = true;
        for (size_t i = 0; i < count; ++i) {
          right &= data[i] == static_cast<std::byte>(i * 31 + static_cast<size_t>(root));
        }
        EXPECT_TRUE(right) << count << " bytes from rank " << root;
      }
    }
  });
}

TEST_P(Collectives, AllGatherPutsTheBlocksInTheOrderOfRanks) {
  run([](Collective& group) {
    for (const size_t count : {size_t{0}, size_t{1}, size_t{13}, size_t{1000}, size_t{1'000'003}}) {
      const std::vector<std::byte> mine(count, static_cast<std::byte>(group.rank() + 1));
      std::vector<std::byte> all(count * static_cast<size_t>(group.size()));
      const auto done = group.all_gather(mine, all);
      ASSERT_TRUE(done) << done.failure().message();
      bool right = true;
      for (size_t i = 0; i < all.size(); ++i) right &= all[i] == static_cast<std::byte>(i / count + 1);
      EXPECT_TRUE(right) << count << " bytes";
    }
  });
}

TEST_P(Collectives, NobodyLeavesABarrierBeforeTheLastHasCome) {
  run([](Collective& group) {
    // All members share this clock, since every engine's members are on this machine.
    const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
    for (int late = 0; late < group.size(); ++late) {
      if (group.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(30));
      const int64_t came = now();
      const auto done = group.barrier();
      const int64_t left = now();
      ASSERT_TRUE(done) << done.failure().message();
      std::vector<int64_t> all(static_cast<size_t>(group.size()));
      ASSERT_TRUE(group.all_gather(std::as_bytes(std::span(&came, 1)), std::as_writable_bytes(std::span(all))));
      for (const int64_t theirs : all) EXPECT_LE(theirs, left);
    }
  });
}

TEST_P(Collectives, ManyOperationsInARowKeepApart) {
  run([](Collective& group) {
    std::minstd_rand random(5);  // the same on all members
    const int size = group.size();
    for (int round = 0; round < 2000; ++round) {
      const size_t count = random() % 300;
      const int root = static_cast<int>(random() % static_cast<uint32_t>(size));
      std::vector<float> data(count, static_cast<float>(round + group.rank()));
      const auto kind = random() % 8;
      if (kind == 0) {
        ASSERT_TRUE(group.barrier());
      } else if (kind == 1) {
        ASSERT_TRUE(group.broadcast(std::as_writable_bytes(std::span(data)), root));
        for (const float value : data) ASSERT_EQ(value, static_cast<float>(round + root));
      } else {
        ASSERT_TRUE(group.all_reduce(data));
        for (const float value : data) ASSERT_EQ(value, static_cast<float>(size * round + size * (size - 1) / 2));
      }
    }
  });
}

TEST_P(Collectives, MembersOfUnequalSpeedStayTogether) {
  run(
      [](Collective& group) {
        std::minstd_rand random(static_cast<uint32_t>(group.rank()) + 1);
        for (int round = 0; round < 100; ++round) {
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
          expect_sum(group, 100, Element::float32);
        }
      },
      {Seconds(120), std::chrono::microseconds(50)});
}

TEST_P(Collectives, TrafficCountsWhatMoves) {
  run([](Collective& group) {
    constexpr size_t kCount = 100'000;
    std::vector<float> data(kCount, 1);
    const Traffic before = group.traffic();
    ASSERT_TRUE(group.all_reduce(data));
    const Traffic after = group.traffic();
    const uint64_t mine[] = {after.sent - before.sent, after.received - before.received};
    std::vector<uint64_t> all(2 * static_cast<size_t>(group.size()));
    ASSERT_TRUE(group.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all))));
    uint64_t sent = 0;
    uint64_t received = 0;
    for (size_t rank = 0; rank < static_cast<size_t>(group.size()); ++rank) {
      sent += all[2 * rank];
      received += all[2 * rank + 1];
    }
    EXPECT_EQ(sent, received);
    // At least the traffic of a ring, at most that of everyone sending everything to everyone.
    const auto others = static_cast<uint64_t>(group.size() - 1);
    EXPECT_GE(sent, 2 * others * kCount * sizeof(float));
    EXPECT_LE(sent, (others + 1) * others * kCount * sizeof(float) + 1000 * others);
  });
}

/// Returns true if the members fail at the missing rank. On a busy machine a short deadline may pass before.
bool fails_without_the_last(const Arrangement& arrangement, Seconds deadline) {
  std::atomic<int> ended = 0;
  std::atomic<bool> too_short = false;
  const auto body = [&](Collective& group) {
    std::vector<float> data(1000, 1);
    if (!group.all_reduce(data)) {
      too_short = true;
    } else if (group.rank() == group.size() - 1) {
      wait_for_others(arrangement, ended, job_deadline() + Seconds(1));
      group.abort("the test is over");
    } else {
      const auto done = group.all_reduce(data);
      EXPECT_FALSE(done || done.failure().message().empty());
      EXPECT_FALSE(group.barrier()) << "a group that failed has no further use";
    }
    ++ended;
  };
  run_group(arrangement, {deadline, {}}, body);
  return !too_short;
}

TEST_P(CollectiveFailures, WhoDoesNotComeMakesTheOthersFailAtTheirDeadline) {
  if (GetParam().size == 1) return;
  bool came_to_it = false;
  for (const double deadline : {0.5, 4.0, 30.0}) {
    came_to_it = fails_without_the_last(GetParam(), Seconds(deadline));
    if (came_to_it || HasFailure()) break;
  }
  EXPECT_TRUE(came_to_it);
}

TEST_P(CollectiveFailures, AbortEndsAnOperationUnderWayAndAllLaterOnes) {
  if (GetParam().size == 1) return;
  std::atomic<int> ended = 0;
  run([&](Collective& group) {
    std::vector<float> data(1000, 1);
    ASSERT_TRUE(group.barrier());
    if (group.rank() == group.size() - 1) {
      // The last member must neither join nor leave while the others are aborted one by one.
      wait_for_others(GetParam(), ended, Seconds(3));
      return group.abort("the test is over");
    }
    std::thread other([&group] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      group.abort("worker:7 is lost");
    });
    const auto done = group.all_reduce(data);
    other.join();
    const auto again = group.all_reduce(data);
    ++ended;
    ASSERT_FALSE(done);
    ASSERT_FALSE(again);
    if (group.size() > 2) return;  // with more members, the first abort may end the others' wait before their own abort
    EXPECT_THAT(done.failure().message(), HasSubstr("worker:7 is lost"));
    EXPECT_THAT(again.failure().message(), HasSubstr("worker:7 is lost"));
  });
}

std::string name_of(const ::testing::TestParamInfo<Arrangement>& info) {
  return info.param.engine + "Of" + std::to_string(info.param.size);
}

INSTANTIATE_TEST_SUITE_P(Engines, Collectives, ::testing::ValuesIn(arrangements()), name_of);
INSTANTIATE_TEST_SUITE_P(Engines, CollectiveFailures, ::testing::ValuesIn(arrangements()), name_of);

}  // namespace
}  // namespace lockstep::collective
