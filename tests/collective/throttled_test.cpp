#include "collective/throttled.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "collective/in_process.h"

namespace lockstep::collective {
namespace {

using Clock = std::chrono::steady_clock;

void run_throttled(int size, const Network& network, const std::function<void(Collective&)>& body) {
  std::vector<std::thread> threads;
  for (auto& member : make_in_process_group(size)) {
    threads.emplace_back([&body, slow = throttle(std::move(member), network)] { body(*slow); });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Throttled, AnAllReduceTakesTwiceItsBytesWithoutOnesOwnShareAndItsMessages) {
  const Network network{1e6, Seconds(0.25)};
  EXPECT_DOUBLE_EQ(all_reduce_time(network, 1, 1'000'000).count(), 0);
  EXPECT_DOUBLE_EQ(all_reduce_time(network, 2, 1'000'000).count(), 2 * 0.25 + 1);
  EXPECT_DOUBLE_EQ(all_reduce_time(network, 4, 1'000'000).count(), 4 * 0.25 + 1.5);
}

TEST(Throttled, OperationsTakeAtLeastTheTimeOfTheNetworkAndDoTheirWork) {
  const Network network{1e6, Seconds(0.001)};
  run_throttled(2, network, [&](Collective& group) {
    std::vector<float> data(10'000, 1);
    const auto begin = Clock::now();
    ASSERT_TRUE(group.all_reduce(data));
    EXPECT_GE(Clock::now() - begin, all_reduce_time(network, 2, data.size() * sizeof(float)));
    EXPECT_EQ(data[17], 2);
    const int mine = group.rank();
    std::vector<int> all(2);
    ASSERT_TRUE(group.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all))));
    EXPECT_EQ(all[1], 1);
    ASSERT_TRUE(group.broadcast(std::as_writable_bytes(std::span(data)), 1));
    ASSERT_TRUE(group.barrier());
  });
}

TEST(Throttled, TheNetworkBeginsWhenTheLastHasCome) {
  const Network network{1e6, Seconds(0)};
  std::atomic<int64_t> last = 0;
  run_throttled(2, network, [&](Collective& group) {
    std::vector<float> data(5'000, 1);
    if (group.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      last = Clock::now().time_since_epoch().count();
    }
    ASSERT_TRUE(group.all_reduce(data));
    const auto since = Clock::now() - Clock::time_point(Clock::duration(last));
    EXPECT_GE(since, all_reduce_time(network, 2, data.size() * sizeof(float)));
  });
}

TEST(Throttled, AbortEndsTheSleep) {
  // At a byte per second it would take most of a day.
  run_throttled(2, {1, Seconds(0)}, [](Collective& group) {
    std::vector<float> data(20'000, 1);
    std::thread other([&group] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      group.abort("over");
    });
    EXPECT_FALSE(group.all_reduce(data));
    other.join();
    EXPECT_FALSE(group.all_reduce(data));
  });
}

}  // namespace
}  // namespace lockstep::collective
