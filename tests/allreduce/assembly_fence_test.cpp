// The fence: whether a member may still give files of its group their names.
#include "allreduce/assembly_support.h"

namespace lockstep::allreduce::elastic::testing {
namespace {

/// Starts a check, lets time pass, and returns the outcome.
std::optional<std::string> check_after(World& world, double seconds) {
  world.assembly(0).begin_check(world.now());
  world.pass(seconds);
  return world.assembly(0).checked(world.now());
}

TEST(Fence, AGroupThatTheRegisterHoldsKeepsItsFiles) {
  World world = running(2, registered());
  world.pass(1);
  world.assembly(0).begin_check(world.now());
  EXPECT_FALSE(world.assembly(0).checked(world.now())) << "the register has not answered";
  world.pass(0.5);
  EXPECT_EQ(world.assembly(0).checked(world.now()), "");
}

TEST(Fence, AGroupThatAnotherHasReplacedKeepsNothing) {
  World world = running(2, registered());
  const Group next{9, 77, {{1, 5}}};
  ASSERT_EQ(world.cell.swap(world.cell.group(), next).outcome, authority::Outcome::won);
  EXPECT_EQ(check_after(world, 0.5), "group 9 has taken the place of group 1");
}

TEST(Fence, WhileTheAuthorityIsAwayTheMembersWordCounts) {
  World world = running(2, registered());
  world.away = true;
  EXPECT_EQ(check_after(world, 2), "");
  world.kill(1);
  EXPECT_EQ(check_after(world, 0.5), "group 1 has broken up");
}

TEST(Fence, AGroupThatIsBrokenKeepsNothing) {
  World world = running(3);
  EXPECT_EQ(check_after(world, 0.5), "");
  world.cut(0, 1);
  world.cut(0, 2);
  EXPECT_EQ(check_after(world, 0.5), "group 1 has broken up");
}

TEST(Fence, AnInterruptedMemberForWhomTheNextGroupWaitedKeepsItsFiles) {
  for (const AssemblyRules& rules : {AssemblyRules{}, registered()}) {
    World world = running(2, rules);
    const auto deliver_all = [&] {
      while (world.deliver([](size_t) { return 0; })) {
      }
    };
    world.form_all();
    for (int i = 0; i < 20 && !(world.at(0).connecting && world.at(1).connecting); ++i) {
      deliver_all();
      for (const int member : {0, 1}) {
        if (!world.at(member).connecting) world.work(member);
      }
    }
    ASSERT_TRUE(world.at(0).connecting && world.at(1).connecting);
    world.work(1);
    deliver_all();
    ASSERT_EQ(world.assembly(1).group().number, 2U) << "it makes no step without member 0";
    world.assembly(0).withdraw(true);
    world.at(0).connecting.reset();
    EXPECT_EQ(check_after(world, 0.5), "");
  }
}

TEST(Fence, AProcessThatWasStoppedLooksAroundFirst) {
  World world = running(3);
  world.pass(1);
  world.assembly(0).begin_check(world.now());
  EXPECT_EQ(world.assembly(0).checked(world.now()), "");
  EXPECT_FALSE(world.assembly(0).checked(world.now() + 20)) << "it has not heard the others since";
}

}  // namespace
}  // namespace lockstep::allreduce::elastic::testing
