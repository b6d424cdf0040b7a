// Rules by which members agree on a group, one test each.
#include <gmock/gmock.h>

#include "allreduce/assembly_support.h"

namespace lockstep::allreduce::elastic::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Start, AllExpectedMembersFormOneGroupAtOnce) {
  World world(3);
  world.start_all();
  world.form_all();
  world.settle();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(world.running(i));
    EXPECT_THAT(world.members_of(i), ElementsAre(0, 1, 2));
  }
  ASSERT_EQ(world.formed.size(), 1U);
  const auto& told = world.formed.begin()->second;
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told.at(1).source, 0);
  EXPECT_TRUE(told.at(1).transfer) << "nobody has trained: everyone begins with the lowest one's parameters";
  EXPECT_THAT(told.at(2).addresses, ElementsAre("address of 0", "address of 1", "address of 2"));
}

TEST(Start, WaitsForWhoeverIsMissing) {
  World world(3);
  world.start(0);
  world.start(1);
  world.form(0);
  world.form(1);
  world.pass(59);
  EXPECT_FALSE(world.running(0));
  ASSERT_FALSE(world.at(0).log_lines.empty());
  EXPECT_THAT(world.at(0).log_lines.back().text, HasSubstr("worker:2 at h:2 (has not come)"));
  world.start(2);
  world.form(2);
  world.settle();
  EXPECT_THAT(world.members_of(0), ElementsAre(0, 1, 2));
}

TEST(Start, GoesOnWithThoseWhoAreThereWhenTheWaitIsOver) {
  World world(3);
  world.start(0);
  world.start(1);
  world.form(0);
  world.form(1);
  world.pass(61);
  EXPECT_THAT(world.members_of(0), ElementsAre(0, 1));
}

TEST(Start, TooFewWaitOnAndFailWithTheNamesOfTheMissing) {
  World world(3);
  world.start(2);
  world.form(2);
  world.pass(599);
  EXPECT_EQ(world.assembly(2).failure(), "");
  world.pass(3);
  EXPECT_THAT(world.assembly(2).failure(), HasSubstr("worker:0 at h:0 (has not come), worker:1 at h:1"));
  EXPECT_FALSE(world.assembly(2).over());
}

TEST(Start, ExpectedIsHowManyItWaitsFor) {
  AssemblyRules three;
  three.expected = 3;
  World world(4, three);
  for (const int member : {1, 2, 3}) world.start(member);
  for (const int member : {1, 2, 3}) world.form(member);
  world.settle();
  EXPECT_THAT(world.members_of(1), ElementsAre(1, 2, 3));
}

TEST(Start, ExpectedMembersThatAreTooFewToTrainWaitForMore) {
  AssemblyRules two;
  two.expected = 2;
  World world(4, two);
  world.start(1);
  world.start(3);
  world.form(1);
  world.form(3);
  world.pass(100);
  EXPECT_FALSE(world.running(1));
  EXPECT_THAT(world.at(1).log_lines.back().text,
              HasSubstr("more than half of the 4 members are needed, or half with worker:0; worker:1, worker:3 are"));
}

TEST(Start, OneMemberOfALargeClusterSumsUpWhomAllWaitFor) {
  AssemblyRules large;
  large.relayed = true;
  World world(20, large);
  const std::vector<int> here = {0, 1, 2, 4, 5, 6, 7, 18, 19};
  for (const int member : here) world.start(member);
  for (const int member : here) world.form(member);
  world.pass(8);
  ASSERT_FALSE(world.at(0).log_lines.empty());
  EXPECT_THAT(
      world.at(0).log_lines.back().text,
      HasSubstr(" s so far for 11 of 20 members, not here yet: worker:3, worker:8 to worker:17; more than half of "
                "the 20 members are needed, or half with worker:0; 9 members are here"));
  for (const int member : here) {
    EXPECT_TRUE(member == 0 || world.at(member).log_lines.empty()) << world.at(member).log_lines.back().text;
  }
}

TEST(Death, InALargeClusterALossIsToldOnceHoweverOftenItHappens) {
  AssemblyRules large;
  large.relayed = true;
  World world = running(12, large);
  for (int i = 0; i < 50; ++i) {
    world.sever(3, 5);
    world.join(3, 5);
  }
  world.sever(3, 5);
  EXPECT_TRUE(world.at(3).log_lines.empty()) << "others lead";
  for (const int member : {0, 1, 2}) world.kill(member);
  std::map<std::string, int> told;
  for (const LogLine& line : world.at(3).log_lines) ++told[line.text.substr(0, line.text.find(" at "))];
  EXPECT_EQ(told, (std::map<std::string, int>{{"worker:0", 1}, {"worker:1", 1}, {"worker:2", 1}, {"worker:5", 1}}));
}

TEST(Start, OneThatIsStillGettingReadyJoinsLater) {
  World world(3);
  world.start_all();
  world.form(0);
  world.form(1);
  world.pass(61);
  EXPECT_THAT(world.members_of(0), ElementsAre(0, 1));
  EXPECT_FALSE(world.assembly(0).wants_regroup());
  world.form(2);
  world.settle();
  EXPECT_TRUE(world.assembly(0).wants_regroup());
}

TEST(Death, SurvivorsGoOnFromTheSameStepWithoutATransfer) {
  World world = running(3);
  world.kill(1);
  EXPECT_EQ(world.assembly(0).broken(), "worker:1 at h:1: connection closed");
  EXPECT_EQ(world.assembly(2).broken(), "worker:1 at h:1: connection closed");
  form_broken(world);
  EXPECT_THAT(world.members_of(0), ElementsAre(0, 2));
  EXPECT_THAT(world.members_of(2), ElementsAre(0, 2));
  const Decision& told = world.formed[world.assembly(0).group().id].at(2);
  EXPECT_FALSE(told.transfer);
  EXPECT_EQ(told.standing.step, 1U);
  EXPECT_EQ(world.assembly(0).announced(), "group 2 of worker:0, worker:2 continues from step 1, without worker:1");
}

TEST(Death, OfTheLeaderMovesItsDutiesToTheNext) {
  World world = running(3);
  world.kill(0);
  form_broken(world);
  EXPECT_THAT(world.members_of(1), ElementsAre(1, 2));
  EXPECT_EQ(world.assembly(2).leader(world.now()), 1);
}

TEST(Death, TheOneThatFinishedTheStepIsTheSource) {
  World world = running(3);
  world.step(2);
  world.kill(1);
  form_broken(world);
  const Decision& told = world.formed[world.assembly(0).group().id].at(0);
  EXPECT_EQ(told.source, 1) << "rank 1 is worker:2";
  EXPECT_TRUE(told.transfer);
  EXPECT_EQ(told.standing.step, 2U);
}

TEST(Death, OneWithPartOfAStateIsNoSource) {
  World world = running(3);
  world.at(0).standing.whole = false;
  world.at(0).standing.live = false;
  world.kill(1);
  form_broken(world);
  const Decision& told = world.formed[world.assembly(0).group().id].at(0);
  EXPECT_EQ(told.source, 1);
  EXPECT_TRUE(told.transfer);
}

TEST(Death, BeingSlowIsNotBeingDead) {
  World world = running(3);
  world.kill(1);
  world.form(0);
  world.settle();
  world.pass(30);
  EXPECT_FALSE(world.running(0)) << "worker:2 has not come yet, and is not dead";
  EXPECT_THAT(world.at(0).log_lines.back().text, HasSubstr("worker:2 at h:2 to leave group 1"));
  world.form(2);
  world.settle();
  EXPECT_THAT(world.members_of(0), ElementsAre(0, 2));
}

TEST(Death, OfManyLeavesOneThatWaitsForAnotherOneToReturn) {
  World world = running(3);
  world.kill(0);
  world.kill(1);
  form_broken(world);
  world.pass(30);
  EXPECT_FALSE(world.running(2)) << "the dead count, too";
  world.start(1);
  world.form(1);
  world.settle();
  EXPECT_THAT(world.members_of(2), ElementsAre(1, 2));
  EXPECT_EQ(world.formed[world.assembly(2).group().id].at(2).source, 1) << "it has the state";
}

TEST(Death, DuringAProposalLeadsToAnotherOne) {
  World world = running(4);
  world.kill(3);
  for (int i = 0; i < 3; ++i) world.form(i);
  while (world.assembly(1).status().seen < 2) world.deliver([](size_t) { return 0; });
  world.kill(2);
  world.settle();
  world.pass(1);
  EXPECT_THAT(world.members_of(0), ElementsAre(0, 1));
  EXPECT_THAT(world.members_of(1), ElementsAre(0, 1));
}

TEST(Death, OfTheProposerLeadsToAnotherOnesProposal) {
  World world = running(5);
  world.kill(4);
  for (int i = 0; i < 4; ++i) world.form(i);
  while (world.assembly(1).status().seen < 2) world.deliver([](size_t) { return 0; });
  world.kill(0);
  world.settle();
  world.pass(1);
  EXPECT_THAT(world.members_of(1), ElementsAre(1, 2, 3));
}

TEST(Death, WhileConnectingLeadsToAnotherGroup) {
  World world(3);
  world.start_all();
  world.form_all();
  while (!world.at(1).connecting) {
    world.deliver([](size_t) { return 0; });
    for (int i = 0; i < 3 && !world.at(1).connecting; ++i) world.work(i);
  }
  world.kill(2);
  world.settle();
  world.pass(62);
  EXPECT_THAT(world.members_of(0), ElementsAre(0, 1));
}

TEST(Quorum, TheSmallerPartOfABrokenNetworkWaits) {
  World world = running(5);
  for (const int a : {0, 1}) {
    for (const int b : {2, 3, 4}) world.cut(a, b);
  }
  form_broken(world);
  world.pass(30);
  EXPECT_THAT(world.members_of(2), ElementsAre(2, 3, 4));
  EXPECT_TRUE(world.running(2));
  EXPECT_FALSE(world.running(0));
  EXPECT_THAT(world.at(0).log_lines.back().text,
              HasSubstr("more than half of the 5 members are needed; worker:0, worker:1 are here"));
}

TEST(Quorum, OfTwoHalvesThatWithTheLowestGoesOn) {
  World world = running(4);
  for (const int a : {0, 3}) {
    for (const int b : {1, 2}) world.cut(a, b);
  }
  form_broken(world);
  world.pass(30);
  EXPECT_TRUE(world.running(3));
  EXPECT_FALSE(world.running(1));
}

TEST(Quorum, TheDeadCountAlthoughTheirEndIsCertain) {
  World world = running(3);
  world.kill(0);
  world.cut(1, 2);
  form_broken(world);
  world.pass(30);
  EXPECT_FALSE(world.running(1) || world.running(2)) << "each is one of three";
  EXPECT_THAT(world.at(2).log_lines.back().text, HasSubstr("worker:0 at h:0 (connection closed), worker:1 at h:1"));
}

TEST(Quorum, OfTwoOnlyTheLowerOneGoesOnAlone) {
  for (const int left : {0, 1}) {
    World world = running(2);
    world.kill(1 - left);
    form_broken(world);
    world.pass(10);
    EXPECT_EQ(world.running(left), left == 0);
  }
}

TEST(Quorum, AMemberThatWasCutOffDoesNotTrainBesideTheOthers) {
  World world = running(3);
  for (const int other : {1, 2}) world.cut(0, other);
  form_broken(world);
  ASSERT_THAT(world.members_of(1), ElementsAre(1, 2));
  for (int i = 0; i < 9; ++i) {
    for (const int member : {1, 2}) world.step(member);
  }
  world.kill(2);
  form_broken(world);
  // Worker 0 hears that worker 2 is dead before worker 1 has reconnected.
  world.assembly(0).peer_confirmed_dead(2, world.now());
  world.pass(10);
  EXPECT_FALSE(world.running(0) || world.running(1));
  world.heal(0, 1);
  world.settle();
  EXPECT_THAT(world.members_of(0), ElementsAre(0, 1));
  EXPECT_EQ(world.at(0).standing.step, 10U) << "the one with more steps keeps them";
}

TEST(Quorum, MembersThatRestartWithoutMemoryFollowTheSameRule) {
  World world = running(3);
  world.kill(0);
  world.kill(2);
  form_broken(world);
  for (const int other : {0, 2}) world.cut(1, other);
  for (const int member : {0, 2}) world.start(member);
  for (const int member : {0, 2}) world.form(member);
  world.pass(70);
  EXPECT_THAT(world.members_of(0), ElementsAre(0, 2)) << "two of three, although they know nothing";
  EXPECT_FALSE(world.running(1)) << "so it must not train";
  world.at(1).standing.step = 20;
  for (const int other : {0, 2}) world.heal(1, other);
  world.settle();
  ASSERT_TRUE(world.assembly(0).wants_regroup());
}

TEST(Quorum, FewerThanMinWorkersWait) {
  World world = running(3, rules(3));
  world.kill(0);
  form_broken(world);
  world.pass(30);
  EXPECT_FALSE(world.running(2));
  EXPECT_THAT(world.at(2).log_lines.back().text, HasSubstr("3 of the 3 members are needed"));
}

TEST(Quorum, MembersThatDoNotAllReachEachOtherLeaveOutTheWorstConnected) {
  World world = running(5);
  for (const int other : {2, 3, 4}) world.cut(0, other);
  form_broken(world);
  world.pass(3);
  form_broken(world);  // worker 1 sees that the others have left
  world.pass(30);
  EXPECT_THAT(world.members_of(4), ElementsAre(1, 2, 3, 4)) << "worker 0 reaches worker 1 alone";
  EXPECT_TRUE(world.running(1));
}

TEST(Split, LetsBothPartsGoOn) {
  World world = running(3, split());
  for (const int b : {0, 1}) world.cut(2, b);
  form_broken(world);
  EXPECT_TRUE(world.running(0));
  EXPECT_TRUE(world.running(2));
}

/// Two parts of five go on apart and make these steps; then they meet. Returns the step that all go on from.
uint64_t meet(int steps_of_two, int steps_of_three) {
  World world = running(5, split());
  for (const int a : {0, 1}) {
    for (const int b : {2, 3, 4}) world.cut(a, b);
  }
  form_broken(world);
  EXPECT_THAT(world.members_of(0), ElementsAre(0, 1));
  EXPECT_THAT(world.members_of(4), ElementsAre(2, 3, 4));
  for (int i = 0; i < 5; ++i) {
    for (int n = 0; n < (i < 2 ? steps_of_two : steps_of_three); ++n) world.step(i);
  }
  for (const int a : {0, 1}) {
    for (const int b : {2, 3, 4}) world.heal(a, b);
  }
  world.settle();
  for (int turn = 0; turn < 5; ++turn) {
    for (const int leader : {0, 2}) {
      if (!world.running(leader) || !world.assembly(leader).wants_regroup()) continue;
      for (const int member : world.members_of(leader)) world.form(member);
    }
    world.pass(1);
  }
  EXPECT_THAT(world.members_of(0), ElementsAre(0, 1, 2, 3, 4));
  const Decision& told = world.formed[world.assembly(0).group().id].at(0);
  EXPECT_TRUE(told.transfer);
  EXPECT_EQ(told.source, steps_of_three > steps_of_two ? 2 : 0);
  return told.standing.step;
}

TEST(Split, TheGroupWithMoreStepsKeepsThemWhenTheyMeet) {
  EXPECT_EQ(meet(7, 3), 8U) << "although it is smaller";
  EXPECT_EQ(meet(3, 7), 8U) << "although the other one has the lowest number";
}

TEST(Split, OfEqualStepsTheStateOfTheLowerLeaderGoesOn) { EXPECT_EQ(meet(4, 4), 5U); }

TEST(Progress, OfACheckpointIsWorthMoreThanFewerStepsOfALiveMember) {
  World world = running(3);
  for (const int member : {0, 1}) world.kill(member);
  form_broken(world);
  for (const int member : {0, 1}) {
    world.start(member);
    world.at(member).standing.step = 900;  // of a checkpoint
    world.form(member);
  }
  world.pass(1);
  EXPECT_EQ(world.at(2).standing.step, 900U);
}

TEST(Promise, IsGivenForNoNumberThatItHasLeft) {
  World world = running(3);
  world.form(1);
  const Seats seats{{0, world.at(0).incarnation}, {1, world.at(1).incarnation}};
  world.assembly(1).receive(0, Proposal{1, seats}, world.now());
  EXPECT_FALSE(world.assembly(1).take_preparation()) << "it was in group 1 and has left it";
  world.assembly(1).receive(0, Proposal{2, seats}, world.now());
  EXPECT_TRUE(world.assembly(1).take_preparation());
}

TEST(Promise, IsGivenToOneProposerAtATime) {
  World world = running(3);
  world.form(1);
  const Seats seats{{0, world.at(0).incarnation}, {1, world.at(1).incarnation}};
  const Seats others{{1, world.at(1).incarnation}, {2, world.at(2).incarnation}};
  world.assembly(1).receive(0, Proposal{2, seats}, world.now());
  ASSERT_TRUE(world.assembly(1).take_preparation());
  world.assembly(1).receive(2, Proposal{3, others}, world.now());
  EXPECT_FALSE(world.assembly(1).take_preparation());
  world.assembly(1).receive(0, Refusal{2}, world.now());
  world.assembly(1).receive(2, Proposal{4, others}, world.now());
  const auto wanted = world.assembly(1).take_preparation();
  ASSERT_TRUE(wanted) << "worker:0 gave its proposal up";
  EXPECT_EQ(wanted->number, 4U);
  EXPECT_EQ(wanted->rank, 0);
}

TEST(Nonsense, IsIgnored) {
  World world = running(3);
  Assembly& member = world.assembly(1);
  const MemberStatus before = member.status();
  Decision decision;
  decision.group = {7, 8, {{0, 1}, {1, 2}}};
  decision.addresses = {"a", "b"};
  decision.source = 5;
  member.receive(0, decision, world.now());
  member.receive(0, Acceptance{9, "a", {}, 0}, world.now());
  member.receive(0, Refusal{1}, world.now());
  member.receive(0, Proposal{5, {{0, 1}, {2, 3}}}, world.now());
  EXPECT_EQ(member.phase(), MemberPhase::running);
  EXPECT_EQ(member.group(), before.group);
  EXPECT_EQ(member.broken(), "");
}

TEST(Majority, OfEqualStepsTheStateOfTheLaterGroupGoesOn) {
  World world = running(3);
  // Worker 0 alone finishes a step, is taken for dead, and the others make the same step in another group.
  world.cut(0, 1);
  world.cut(0, 2);
  for (const int i : {1, 2}) world.form(i);
  world.settle();
  ASSERT_EQ(world.members_of(1), (std::vector<int>{1, 2}));
  for (const int i : {0, 1, 2}) world.step(i);
  world.form(0);
  world.heal(0, 1);
  world.heal(0, 2);
  world.settle();
  for (const int i : {1, 2}) world.form(i);
  world.pass(5);
  ASSERT_EQ(world.members_of(0), (std::vector<int>{0, 1, 2}));
  const Decision& decided = world.formed[world.assembly(0).group().id].at(0);
  EXPECT_NE(decided.source, 0);
}

}  // namespace
}  // namespace lockstep::allreduce::elastic::testing
