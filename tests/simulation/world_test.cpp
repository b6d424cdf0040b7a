// The simulated world itself: order, time, faults, replay and shrinking.
#include "simulation/world.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "simulation/explore.h"

namespace lockstep::simulation {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

/// Connects to a process and sends it numbers, one every 10 ms; connects again when the connection ends.
class Sender : public Actor {
 public:
  Sender(World& world, Process me, Process to) : world_(world), me_(me), to_(to) {}
  void start() override { world_.connect(me_, to_); }
  void connected(Link link) override { send(link); }
  void closed(Link /*link*/, const std::string& why) override {
    ends.push_back(why);
    world_.after(me_, 0.5, [this] { world_.connect(me_, to_); });
  }
  std::vector<std::string> ends;

 private:
  void send(Link link) {
    world_.send(me_, link, next_, [this] { return "number " + std::to_string(next_); });
    ++next_;
    world_.after(me_, 0.01, [this, link] { send(link); });
  }
  World& world_;
  Process me_;
  Process to_;
  int next_ = 0;
};

class Receiver : public Actor {
 public:
  explicit Receiver(std::vector<int>& got) : got_(got) {}
  void start() override {}
  void received(Link /*link*/, const std::any& message) override { got_.push_back(std::any_cast<int>(message)); }

 private:
  std::vector<int>& got_;
};

/// A sender on machine 0 and a receiver on machine 1.
struct Two {
  explicit Two(uint64_t seed, bool record = false) : world(seed, record) {
    world.add_machine("a");
    world.add_machine("b");
    world.add_process("sender", 0, [](World& w, Process me) { return std::make_unique<Sender>(w, me, 1); });
    world.add_process("receiver", 1, [this](World&, Process) { return std::make_unique<Receiver>(got); });
  }
  void play(double until) {
    world.run([] { return false; }, until);
  }
  [[nodiscard]] const std::vector<std::string>& ends() const { return static_cast<Sender*>(world.actor(0))->ends; }

  World world;
  std::vector<int> got;
};

TEST(World, DeliversInOrderWithinAConnection) {
  Two two(1);
  two.play(5);
  EXPECT_THAT(two.got, SizeIs(::testing::Gt(400U)));
  EXPECT_TRUE(std::is_sorted(two.got.begin(), two.got.end()));
}

TEST(World, ACutHoldsPacketsBackUntilItHeals) {
  Two two(2);
  two.world.schedule({{FaultKind::cut_one_way, 1, 2, 0, 1}});
  two.play(2.9);
  const size_t before = two.got.size();
  EXPECT_LT(before, 120U);
  two.play(3.5);
  EXPECT_GT(two.got.size(), before + 200);
  EXPECT_TRUE(std::is_sorted(two.got.begin(), two.got.end()));
  EXPECT_THAT(two.ends(), SizeIs(0));
}

TEST(World, AHalfOpenConnectionSwallowsEverythingAndNobodyHearsOfIt) {
  Two two(3);
  two.world.schedule({{FaultKind::half_open, 1, 0, 0, 1}});
  two.play(10);
  EXPECT_LT(two.got.size(), 120U);
  EXPECT_THAT(two.ends(), SizeIs(0));
}

TEST(World, TheEndOfAProcessClosesItsConnections) {
  Two two(4);
  two.world.schedule({{FaultKind::kill, 1, 2, 1, 0}});
  two.play(6);
  EXPECT_THAT(two.ends(),
              ElementsAre("the connection closed", "connection refused", "connection refused", "connection refused"));
}

TEST(World, NobodyHearsOfAPowerCutUntilTheMachineIsBack) {
  Two two(5);
  two.world.schedule({{FaultKind::power_cut, 1, 3, 1, 0}});
  two.play(3.9);
  EXPECT_THAT(two.ends(), SizeIs(0));
  two.play(5);
  EXPECT_THAT(two.ends(), ElementsAre("connection reset"));
}

TEST(World, AStoppedProcessDoesEverythingLate) {
  Two two(6);
  two.world.schedule({{FaultKind::stop, 1, 2, 1, 0}});
  two.play(2.9);
  EXPECT_LT(two.got.size(), 120U);
  two.play(3.1);
  EXPECT_GT(two.got.size(), 250U);
}

TEST(Disk, KeepsThroughAPowerCutWhatWasSynced) {
  Random random(7);
  bool lost = false;
  for (int i = 0; i < 100; ++i) {
    Disk disk;
    EXPECT_TRUE(disk.write("state", "old"));
    disk.sync("state");
    EXPECT_TRUE(disk.write("state", "new"));
    EXPECT_EQ(disk.read("state"), "new");
    disk.power_cut(random);
    lost = lost || disk.read("state") != "new";
    disk.sync("state");
    disk.power_cut(random);
    EXPECT_TRUE(disk.read("state"));
    disk.full = true;
    EXPECT_FALSE(disk.write("state", "more"));
  }
  EXPECT_TRUE(lost);
}

/// Fails if two of its faults are there: the first kill and the first stop of the plan.
Suite fails_of_two() {
  Suite suite;
  suite.name = "example";
  suite.plan = [](uint64_t seed) {
    Random random(seed);
    return plan_faults(random, {}, 12, 2, 2);
  };
  suite.play = [](uint64_t seed, const std::vector<Fault>& faults, bool record) {
    Two two(seed, record);
    two.world.schedule(faults);
    two.play(30);
    const auto any = [&](FaultKind kind) {
      return std::any_of(faults.begin(), faults.end(), [&](const Fault& fault) { return fault.kind == kind; });
    };
    if (any(FaultKind::kill) && any(FaultKind::stop)) two.world.fail("a kill and a stop");
    return played(two.world);
  };
  return suite;
}

TEST(Explore, ReplaysAHistoryExactly) {
  const Suite suite = fails_of_two();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Played first = suite.play(seed, suite.plan(seed), false);
    const Played again = suite.play(seed, suite.plan(seed), true);
    EXPECT_EQ(first.digest, again.digest);
    EXPECT_EQ(first.events, again.events);
    EXPECT_NE(first.digest, suite.play(seed + 1, suite.plan(seed), false).digest);
  }
}

TEST(Explore, ReportsAHistoryThatFailsWithAsFewFaultsAsItTakes) {
  const Explored explored = explore(fails_of_two(), 1, 100);
  ASSERT_TRUE(explored.failed);
  EXPECT_THAT(explored.report, AllOf(HasSubstr("example, seed"), HasSubstr("2 of 12 faults are enough"),
                                     HasSubstr("--histories=1"), HasSubstr("kill "), HasSubstr("stop ")));
}

}  // namespace
}  // namespace lockstep::simulation
