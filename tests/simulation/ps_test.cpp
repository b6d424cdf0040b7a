// Whole clusters of workers, servers, chief and evaluator: whatever fails, each update is on all servers or none, each
// example counts once, nothing acknowledged is lost, every wait has a name, and training ends.
#include <gtest/gtest.h>

#include <cstdio>

#include "simulation/ps_suite.h"

namespace lockstep::simulation {
namespace {

TEST(SimulatedServers, TrainThroughEveryFault) {
  const Choice chosen = choice(5000);
  const Explored explored = explore(ps_suite(), chosen.seed, chosen.histories);
  EXPECT_FALSE(explored.failed) << explored.report;
  RecordProperty("histories", static_cast<int>(explored.histories));
  RecordProperty("events", std::to_string(explored.events));
}

TEST(SimulatedServers, WaitForAllWorkersAfterTheyWereKilled) {
  const Choice chosen = choice(2000);
  const Explored explored = explore(exact_ps_suite(), chosen.seed, chosen.histories);
  EXPECT_FALSE(explored.failed) << explored.report;
}

TEST(SimulatedServers, TrainThoughConnectionsBreakOneByOne) {
  const Choice chosen = choice(2000);
  const Explored explored = explore(lonely_ps_suite(), chosen.seed, chosen.histories);
  EXPECT_FALSE(explored.failed) << explored.report;
}

TEST(SimulatedServers, ReplayExactly) {
  const Suite suite = ps_suite();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Played first = suite.play(seed, suite.plan(seed), false);
    const Played again = suite.play(seed, suite.plan(seed), true);
    EXPECT_EQ(first.digest, again.digest);
    EXPECT_EQ(first.events, again.events);
  }
}

void expect_found(OldFault fault) {
  const Explored explored = explore(ps_suite(fault), choice(0).seed, 300);
  EXPECT_TRUE(explored.failed) << "not found in " << explored.histories << " histories";
  if (explored.failed) std::printf("found by history %llu\n", static_cast<unsigned long long>(explored.histories));
}

TEST(OldFaults, AServerThatWaitsForRoomWithItsLockIsFound) { expect_found(OldFault::waits_for_room_locked); }

TEST(OldFaults, AServerThatAppliesWhatTheFirstRefusesIsFound) { expect_found(OldFault::followers_do_not_ask); }

TEST(OldFaults, AServerThatNeverNoticesSilenceIsFound) { expect_found(OldFault::silence_unnoticed); }

TEST(OldFaults, AnUpdateThatIsCountedAfterItWasAppliedIsFound) { expect_found(OldFault::books_after_applying); }

TEST(OldFaults, TwoProcessesWithOneNameAreFound) { expect_found(OldFault::two_with_one_name); }

}  // namespace
}  // namespace lockstep::simulation
