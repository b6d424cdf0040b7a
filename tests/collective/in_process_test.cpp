// Thread groups, beyond the conformance of all engines.
#include "collective/in_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "lockstep/error.h"

namespace lockstep::collective {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(InProcess, SumsInTheOrderOfRanks) {
  // A larger number before each one absorbs it, so the order shows.
  const float values[] = {1.0F, 0x1p25F, -0x1p25F, 0.25F};
  float expected = values[0];
  for (int rank = 1; rank < 4; ++rank) expected += values[rank];
  auto members = make_in_process_group(4);
  std::vector<std::thread> threads;
  for (auto& member : members) {
    threads.emplace_back([&member, &values, expected] {
      std::vector<float> data(1000, values[member->rank()]);
      ASSERT_TRUE(member->all_reduce(data));
      for (const float value : data) ASSERT_EQ(value, expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(InProcess, AMemberThatLeavesMakesTheOthersFailAtOnce) {
  auto members = make_in_process_group(3);
  std::vector<float> data(10);
  std::thread leaving([&members] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    members[2].reset();
  });
  std::vector<std::thread> others;
  for (const int rank : {0, 1}) {
    others.emplace_back([&members, rank] {
      std::vector<float> mine(10);
      const auto done = members[static_cast<size_t>(rank)]->all_reduce(mine);
      ASSERT_FALSE(done);
      EXPECT_EQ(done.failure().kind, base::FailureKind::gone);
      EXPECT_THAT(done.failure().ranks, ElementsAre(2));
    });
  }
  leaving.join();
  for (std::thread& other : others) other.join();
}

TEST(InProcess, LeavingAfterTheLastOperationSpoilsNobodysResult) {
  for (int round = 0; round < 200; ++round) {
    auto members = make_in_process_group(3);
    std::vector<std::thread> threads;
    for (auto& member : members) {
      threads.emplace_back([mine = std::move(member)]() mutable {
        std::vector<float> data(100, 1);
        EXPECT_TRUE(mine->all_reduce(data));
        EXPECT_EQ(data[99], 3);
        mine.reset();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(InProcess, LeavingAfterABarrierSpoilsItForNobody) {
  for (int round = 0; round < 200; ++round) {
    auto members = make_in_process_group(4);
    std::vector<std::thread> threads;
    for (auto& member : members) {
      threads.emplace_back([mine = std::move(member)]() mutable {
        EXPECT_TRUE(mine->barrier());
        mine.reset();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(InProcess, CallsThatDoNotFitEachOtherFailInsteadOfMixingMemory) {
  auto members = make_in_process_group(2);
  std::thread other([&members] {
    std::vector<float> data(100);
    const auto done = members[1]->all_reduce(data);
    ASSERT_FALSE(done);
    EXPECT_THAT(done.failure().message(), HasSubstr("rank 1: calls all-reduce of 100 elements"));
  });
  std::vector<float> data(99);
  const auto done = members[0]->all_reduce(data);
  other.join();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.failure().message(), HasSubstr("the first member calls all-reduce of 99 elements"));
}

TEST(InProcess, TheDeadlineNamesWhoDidNotCome) {
  auto members = make_in_process_group(2, {Seconds(0.05), {}});
  const auto done = members[0]->barrier();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.failure().kind, base::FailureKind::timeout);
  EXPECT_EQ(done.failure().message(), "barrier: rank 1: did not arrive within 0.05 s");
}

TEST(InProcess, MemoryMayBeFreedAsSoonAsACallHasFailed) {
  // For the sanitizers: an aborted member frees its memory while the others may be adding it.
  for (int round = 0; round < 200; ++round) {
    auto members = make_in_process_group(3);
    std::vector<std::thread> threads;
    for (auto& member : members) {
      threads.emplace_back([&member] {
        for (bool alive = true; alive;) {
          auto data = std::make_unique<std::vector<float>>(5000, 1);
          alive = member->all_reduce(*data).ok();
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100 + round * 3));
    members[0]->abort("over");
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(InProcess, RefusesARootOrABlockThatIsNotThere) {
  auto members = make_in_process_group(2);
  std::vector<std::byte> data(4);
  EXPECT_THROW((void)members[0]->broadcast(data, 2), UsageError);
  EXPECT_THROW((void)members[0]->all_gather(data, data), UsageError);
}

}  // namespace
}  // namespace lockstep::collective
