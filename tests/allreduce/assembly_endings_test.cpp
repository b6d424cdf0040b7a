// Rules by which members end together, and answers to members that join too late.
#include <gmock/gmock.h>

#include "allreduce/assembly_support.h"

namespace lockstep::allreduce::elastic::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Closing, TheLowestLeadsAndTheOthersHearOfTheEnd) {
  World world = running(3);
  for (int i = 0; i < 3; ++i) world.assembly(i).close(world.now());
  world.pass(1);
  EXPECT_EQ(world.assembly(0).leader(world.now()), 0);
  EXPECT_EQ(world.assembly(1).leader(world.now()), 0);
  EXPECT_FALSE(world.assembly(1).knows_end());
  EXPECT_FALSE(world.assembly(0).may_leave(world.now()));
  world.assembly(0).end(world.now());
  world.pass(1);
  EXPECT_TRUE(world.assembly(1).knows_end());
  EXPECT_TRUE(world.assembly(2).knows_end());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(world.assembly(i).may_leave(world.now()));
}

TEST(Closing, WhenTheLeaderDiesTheNextOneLeads) {
  World world = running(3);
  for (int i = 0; i < 3; ++i) world.assembly(i).close(world.now());
  world.pass(1);
  world.kill(0);
  EXPECT_EQ(world.assembly(1).leader(world.now()), 1);
  EXPECT_EQ(world.assembly(2).leader(world.now()), 1);
}

TEST(Closing, AConnectionThatBreaksForAMomentDoesNotMakeTwoLeaders) {
  World world = running(2);
  for (int i = 0; i < 2; ++i) world.assembly(i).close(world.now());
  world.pass(1);
  world.sever(0, 1);
  EXPECT_EQ(world.assembly(1).leader(world.now()), 0);
  world.join(0, 1);
  world.pass(10);
  EXPECT_EQ(world.assembly(1).leader(world.now()), 0);
  world.cut(0, 1);
  world.pass(10);
  EXPECT_EQ(world.assembly(1).leader(world.now()), 1);
}

TEST(Closing, WhoComesLateHearsThatItIsOver) {
  World world = running(3);
  world.kill(2);
  form_broken(world);
  for (const int i : {0, 1}) world.assembly(i).close(world.now());
  world.pass(1);
  world.start(2);
  world.form(2);
  world.pass(1);
  EXPECT_FALSE(world.assembly(2).over()) << "not all is written yet";
  world.assembly(0).end(world.now());
  world.pass(1);
  EXPECT_TRUE(world.assembly(2).over());
  EXPECT_EQ(world.assembly(2).failure(), "training is over");
}

TEST(Closing, WhoComesLateIsThereWhenAllDieWhoWereAtIt) {
  World world = running(2);
  world.kill(1);
  form_broken(world);
  world.assembly(0).close(world.now());
  world.start(1);
  world.form(1);
  world.pass(1);
  EXPECT_EQ(world.assembly(1).failure(), "");
  world.kill(0);
  world.start(0);
  world.form(0);
  world.pass(1);
  EXPECT_TRUE(world.running(0));
  EXPECT_THAT(world.members_of(1), ElementsAre(0, 1));
}

TEST(Closing, TheLeaderWaitsForOneThatDiedJustNowAndMayComeBack) {
  World world = running(2);
  world.kill(1);
  form_broken(world);
  world.assembly(0).close(world.now());
  world.assembly(0).end(world.now());
  EXPECT_FALSE(world.assembly(0).may_leave(world.now()));
  world.start(1);
  world.pass(1);
  EXPECT_TRUE(world.assembly(0).may_leave(world.now())) << "it has heard";
  world.form(1);
  EXPECT_TRUE(world.assembly(1).over());
}

TEST(Closing, TheEndDoesNotBreakAStepThatIsStillOnItsWay) {
  World world = running(2);
  world.assembly(0).close(world.now());
  world.assembly(0).end(world.now());
  world.pass(1);
  EXPECT_FALSE(world.assembly(0).may_leave(world.now())) << "worker:1 has not finished";
  world.kill(0);
  EXPECT_EQ(world.assembly(1).broken(), "");
  world.pass(3);
  EXPECT_NE(world.assembly(1).broken(), "");
  world.form(1);
  EXPECT_TRUE(world.assembly(1).over());
}

TEST(Closing, OfAGroupThatWasLeftBehindEndsNobodyElse) {
  World world = running(2, split());
  world.cut(0, 1);
  world.form(1);  // the other one is stopped and knows nothing of it
  world.settle();
  ASSERT_TRUE(world.running(1));
  world.assembly(0).close(world.now(), true);
  world.assembly(0).end(world.now());
  world.heal(0, 1);
  world.pass(1);
  EXPECT_FALSE(world.assembly(1).knows_end() || world.assembly(1).interrupted());
  EXPECT_TRUE(world.running(1));
}

TEST(Closing, TheLeaderWaitsAWhileForOneThatHasNotComeYet) {
  AssemblyRules alone;
  alone.expected = 1;
  World world(2, alone);
  world.start(0);
  world.form(0);
  world.pass(1);
  ASSERT_TRUE(world.running(0));
  world.assembly(0).close(world.now());
  world.assembly(0).end(world.now());
  EXPECT_FALSE(world.assembly(0).may_leave(world.now()));
  world.pass(10);
  EXPECT_TRUE(world.assembly(0).may_leave(world.now()));
}

TEST(Interrupt, OfOneEndsAllOfItsGroup) {
  World world = running(3, split());
  world.form(1);
  world.assembly(1).withdraw(true);
  EXPECT_FALSE(world.assembly(1).all_informed()) << "nobody has heard of it";
  world.pass(1);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(world.assembly(i).interrupted()) << i;
  EXPECT_TRUE(world.assembly(1).all_informed());
}

TEST(Interrupt, WhoEndsEarlierThanTheOthersIsNotReportedAsLost) {
  World world = running(3);
  world.assembly(1).withdraw(true);
  world.pass(1);
  world.kill(1);
  const auto says = [](const char* text) { return Contains(Field(&LogLine::text, HasSubstr(text))); };
  EXPECT_THAT(world.at(0).log_lines, says("worker:1 at h:1 was interrupted: all members end"));
  EXPECT_THAT(world.at(0).log_lines, Not(says("connection closed")));
}

TEST(Interrupt, OfOneOutsideEndsNobodyElse) {
  World world = running(3);
  world.kill(2);
  form_broken(world);
  world.start(2);
  world.form(2);
  world.assembly(2).withdraw(true);
  EXPECT_TRUE(world.assembly(2).all_informed()) << "there is nobody to tell";
  world.pass(1);
  EXPECT_FALSE(world.assembly(0).interrupted() || world.assembly(1).interrupted());
}

TEST(Interrupt, IsToldToWhoComesAfterTheEnd) {
  World world = running(2);
  world.kill(1);
  form_broken(world);
  world.assembly(0).close(world.now(), true);
  world.assembly(0).end(world.now());
  world.start(1);
  world.form(1);
  EXPECT_TRUE(world.assembly(1).over());
  EXPECT_TRUE(world.assembly(1).interrupted());
}

TEST(Foremost, IsTheFirstOfTheGroupWhoIsLeft) {
  World world = running(3);
  EXPECT_TRUE(world.assembly(0).first_survivor());
  EXPECT_FALSE(world.assembly(1).first_survivor());
  world.kill(0);
  EXPECT_TRUE(world.assembly(1).first_survivor());
  EXPECT_FALSE(world.assembly(2).first_survivor());
  world.start(0);
  EXPECT_FALSE(world.assembly(0).first_survivor()) << "another process";
}

TEST(Foremost, IsNobodyWithoutWhomTheOthersWentOn) {
  World world = running(2, split());
  world.cut(0, 1);
  world.form(1);
  world.pass(1);
  ASSERT_TRUE(world.running(1));
  world.form(0);
  world.assembly(0).withdraw(true);
  EXPECT_FALSE(world.assembly(0).all_accounted_for()) << "the other one may have gone on";
  world.heal(0, 1);
  EXPECT_TRUE(world.assembly(0).all_accounted_for());
  EXPECT_FALSE(world.assembly(0).first_survivor());
  EXPECT_TRUE(world.assembly(1).first_survivor());
}

TEST(Foremost, IsNobodyWhoHasNotComeToTheStateOfTheGroup) {
  World world = running(2, split());
  world.cut(0, 1);
  world.form(1);
  world.pass(1);
  for (int i = 0; i < 3; ++i) world.step(1);
  world.heal(0, 1);
  for (const int i : {0, 1}) world.form(i);
  // The other is interrupted after the group is decided and one member has connected it.
  while (!world.running(1)) {
    const bool moved = world.deliver([](size_t) { return 0; });
    const bool worked = (!world.at(0).connecting && world.work(0)) || world.work(1);
    ASSERT_TRUE(moved || worked);
  }
  world.at(0).connecting.reset();
  world.assembly(0).withdraw(true);
  world.pass(1);
  EXPECT_FALSE(world.assembly(0).first_survivor());
  EXPECT_TRUE(world.assembly(1).first_survivor());
  EXPECT_TRUE(world.assembly(1).interrupted());
}

TEST(Foremost, IsNobodyWhoKeptItsEarlierState) {
  World world = running(3);
  for (const int i : {1, 2}) world.step(i);
  world.at(0).standing.earlier = true;  // the newer one did not arrive
  for (int i = 0; i < 3; ++i) {
    world.form(i);
    world.assembly(i).withdraw(true);
  }
  world.pass(1);
  EXPECT_FALSE(world.assembly(0).first_survivor());
  EXPECT_TRUE(world.assembly(1).first_survivor());
  EXPECT_FALSE(world.assembly(2).first_survivor());
}

TEST(Foremost, IsNobodyToWhomTheStateOfTheGroupIsOnItsWay) {
  World world = running(3);
  for (const int i : {1, 2}) world.step(i);
  world.awaits_state = {0};
  world.form_all();
  world.pass(1);
  ASSERT_TRUE(world.running(0));
  EXPECT_EQ(world.members_of(0).size(), 3U);
  world.form(1);
  world.assembly(1).withdraw(true);
  world.pass(1);
  EXPECT_TRUE(world.assembly(1).first_survivor());
  EXPECT_FALSE(world.assembly(0).first_survivor());
  world.assembly(0).received();
  world.pass(1);
  EXPECT_TRUE(world.assembly(0).first_survivor());
  EXPECT_FALSE(world.assembly(1).first_survivor());
}

/// One member was away and has made a step more; the others formed a group without it, and then one with it. It is
/// interrupted before the last one of them has connected that.
World interrupted_with_a_step_more() {
  World world = running(3);
  world.cut(0, 1);
  world.cut(1, 2);
  world.form(0);
  world.form(2);
  world.pass(1);
  world.step(1);
  world.awaits_state = {0, 2};
  world.heal(0, 1);
  world.heal(1, 2);
  world.form_all();
  while (!world.running(0)) {
    const bool moved = world.deliver([](size_t) { return 0; });
    bool worked = world.work(0);
    for (const int i : {1, 2}) worked = (!world.at(i).connecting && world.work(i)) || worked;
    if (!moved && !worked) break;
  }
  world.at(1).connecting.reset();
  world.assembly(1).withdraw(true);
  world.pass(1);
  return world;
}

TEST(Foremost, IsWhoHasMoreStepsThanThoseWhoWentOnWithoutIt) {
  World world = interrupted_with_a_step_more();
  const Assembly& away = world.assembly(1);
  ASSERT_EQ(world.members_of(0).size(), 3U);
  ASSERT_THAT(world.members_of(2), ElementsAre(0, 2));
  ASSERT_EQ(away.group().number, 1U);
  EXPECT_TRUE(away.all_informed());
  EXPECT_TRUE(away.first_survivor());
  EXPECT_FALSE(world.assembly(0).first_survivor()) << "its state is on its way";
  world.assembly(1).begin_check(world.now());
  EXPECT_EQ(away.checked(world.now()), "");
}

TEST(Foremost, IsAlsoWhoseGroupStillWaitsForTheNewerState) {
  World world = interrupted_with_a_step_more();
  world.kill(1);
  world.assembly(2).withdraw();
  world.pass(1);
  EXPECT_FALSE(world.assembly(0).first_survivor());
  EXPECT_TRUE(world.assembly(2).first_survivor()) << "nobody else has a state";
  world.assembly(0).received();
  world.pass(1);
  EXPECT_FALSE(world.assembly(2).first_survivor());
}

TEST(SignsOfTheEnd, AreBelievedByWhoIsAlone) {
  World world(2);
  world.start(1);
  world.form(1);
  world.assembly(1).found_ending(900, false, world.now());
  EXPECT_EQ(world.assembly(1).failure(), "") << "the others may be about to show up";
  world.pass(3);
  world.assembly(1).found_ending(900, false, world.now());
  EXPECT_TRUE(world.assembly(1).over());
  EXPECT_FALSE(world.assembly(1).interrupted());
}

TEST(SignsOfTheEnd, AreNotBelievedByWhoKnowsBetter) {
  World world = running(2);
  for (const int i : {0, 1, 1}) world.step(i);
  world.kill(0, false);
  world.form(1);
  world.assembly(1).found_ending(2, false, world.now());
  EXPECT_FALSE(world.assembly(1).over()) << "it is a step further";
  world.assembly(1).found_ending(3, false, world.now());
  EXPECT_TRUE(world.assembly(1).over());
}

TEST(SignsOfTheEnd, AreNotBelievedWhileOthersTrain) {
  World world = running(3);
  world.kill(2);
  form_broken(world);
  world.start(2);
  world.form(2);
  world.pass(3);
  world.assembly(2).found_ending(900, false, world.now());
  EXPECT_FALSE(world.assembly(2).over());
}

}  // namespace
}  // namespace lockstep::allreduce::elastic::testing
