// Times of an all-reduce exchange.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "allreduce/all_reduce_exchange.h"
#include "allreduce/static_membership.h"
#include "collective/in_process.h"
#include "collective/throttled.h"

namespace lockstep::allreduce {
namespace {

constexpr int64_t kParameters = 100000;
constexpr int kSteps = 10;

/// Returns the total times of two members; each step of the second takes `pause` longer.
std::vector<exchange::Spent> spent_by_two(const collective::Network* network, std::chrono::milliseconds pause) {
  std::vector<std::shared_ptr<collective::Collective>> group;
  for (auto& member : collective::make_in_process_group(2)) {
    group.push_back(network == nullptr ? std::move(member) : collective::throttle(std::move(member), *network));
  }
  std::vector<exchange::Spent> sums(2);
  const auto train = [&](size_t rank) {
    program::ParameterStore store({{"w", {kParameters}, {}, {}}}, 1);
    AllReduceOptions options;
    options.examples = 1000;
    options.names = {"worker:0", "worker:1"};
    options.log = [](std::string_view, const std::string&) {};
    AllReduceExchange exchange(store, options, std::make_unique<StaticMembership>(group[rank], ""));
    uint64_t step = std::move(exchange.join()).value_or_throw()->step;
    for (int i = 0; i < kSteps; ++i) {
      exchange.begin({step, 1});
      if (rank == 1) std::this_thread::sleep_for(pause);
      exchange.ready({0, store.count()}, {});
      const exchange::StepInfo info = std::move(exchange.finish({1, 0, 1})).value_or_throw();
      step = info.step;
      const exchange::Spent& spent = info.spent;
      EXPECT_GE(spent.others, 0.0);
      EXPECT_GE(spent.transfer, 0.0);
      EXPECT_GT(spent.optimizer, 0.0);
      EXPECT_LE(spent.others + spent.transfer + spent.optimizer, info.wait_seconds + 1e-6) << "parts of finish()";
      if (i == 0) continue;  // it does not start at the same time for all
      sums[rank].others += spent.others;
      sums[rank].transfer += spent.transfer;
    }
  };
  std::thread second([&] { train(1); });
  train(0);
  second.join();
  return sums;
}

// Other programs take time as well: the slowness grows until it outweighs them.

TEST(AllReducePhases, ASlowMemberIsWhatTheOthersWaitFor) {
  std::vector<exchange::Spent> spent;
  for (const int pause : {30, 120, 480, 1920}) {
    spent = spent_by_two(nullptr, std::chrono::milliseconds(pause));
    if (spent[0].others > 3 * std::max(spent[0].transfer, spent[1].others)) break;
  }
  EXPECT_GT(spent[0].others, 3 * spent[0].transfer);
  EXPECT_GT(spent[0].others, 3 * spent[1].others) << "nobody waits for the one who waits";
}

TEST(AllReducePhases, ASlowNetworkIsTransfer) {
  std::vector<exchange::Spent> spent;
  const auto is_transfer = [](const exchange::Spent& member) { return member.transfer > 3 * member.others; };
  for (const double bytes_per_second : {2e7, 5e6, 1.25e6, 3e5}) {  // 20 ms for each member's bytes, and more
    const collective::Network network{.bytes_per_second = bytes_per_second};
    spent = spent_by_two(&network, std::chrono::milliseconds(0));
    if (std::all_of(spent.begin(), spent.end(), is_transfer)) break;
  }
  for (const exchange::Spent& member : spent) EXPECT_GT(member.transfer, 3 * member.others);
}

}  // namespace
}  // namespace lockstep::allreduce
