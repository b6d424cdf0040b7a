// Members with an authority: who may form a group, and what happens while it does not answer.
#include <gmock/gmock.h>

#include "allreduce/assembly_support.h"

namespace lockstep::allreduce::elastic::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string text_of(const std::vector<LogLine>& lines) {
  std::string text;
  for (const LogLine& line : lines) text += line.text + "\n";
  return text;
}
auto line(const std::string& text) { return ::testing::ResultOf(text_of, HasSubstr(text)); }

TEST(WithAnAuthority, AGroupIsInTheRegisterBeforeItRuns) {
  World world = running(3, registered());
  ASSERT_TRUE(world.running(0) && world.running(1) && world.running(2));
  EXPECT_EQ(world.cell.group(), world.assembly(0).group());
  EXPECT_THAT(world.members_of(2), ElementsAre(0, 1, 2));
}

TEST(WithAnAuthority, ASingleSurvivorGoesOn) {
  World world = running(3, registered());
  world.kill(0, false);
  world.kill(2, false);
  form_broken(world);
  world.pass(5);
  ASSERT_TRUE(world.running(1));
  EXPECT_THAT(world.members_of(1), ElementsAre(1));
  EXPECT_EQ(world.cell.group(), world.assembly(1).group());
}

TEST(WithAnAuthority, OneOfThreePartsGoesOn) {
  World world = running(3, registered());
  world.cut(0, 1);
  world.cut(0, 2);
  world.cut(1, 2);
  form_broken(world);
  world.pass(30);
  EXPECT_EQ(world.running(0) + world.running(1) + world.running(2), 1);
}

TEST(WithAnAuthority, APartFollowsOnlyWithAMemberOfTheLatestGroup) {
  World world = running(3, registered());
  world.cut(0, 1);
  world.cut(0, 2);
  form_broken(world);
  world.pass(60);
  EXPECT_TRUE(world.running(1) && world.running(2)) << "the larger part was left the first turn";
  EXPECT_FALSE(world.running(0));
  EXPECT_THAT(world.at(0).log_lines, line("a member of group 3 (worker:1, worker:2) is needed; worker:0 is here"));
  world.kill(1, false);
  world.kill(2, false);
  world.pass(100);
  EXPECT_FALSE(world.running(0)) << "nobody knows that both are dead";
  world.heal(0, 1);
  world.start(1);
  world.form(1);
  world.pass(5);
  EXPECT_TRUE(world.running(0) && world.running(1));
  world.start(2);
  world.form(2);
  world.heal(0, 2);
  world.pass(2);
  for (const int member : {0, 1}) world.form(member);
  world.pass(5);
  EXPECT_TRUE(world.running(0) && world.running(1) && world.running(2));
}

TEST(WithAnAuthority, WithoutAnAnswerNoGroupFormsAndTheLineNamesTheAuthority) {
  World world(2, registered());
  world.away = true;
  world.start_all();
  world.form_all();
  world.pass(8);
  EXPECT_FALSE(world.running(0));
  EXPECT_THAT(world.at(0).log_lines, line("waiting for the register: no answer"));
  EXPECT_THAT(world.at(0).log_lines, line("waited 5 s so far for the register: no answer"));
  world.away = false;
  world.pass(2);
  EXPECT_TRUE(world.running(0) && world.running(1));
  EXPECT_THAT(world.at(0).log_lines, line("the register answers again"));
}

TEST(WithAnAuthority, ARunningGroupSurvivesItsLoss) {
  World world = running(3, registered());
  world.away = true;
  world.pass(100);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(world.running(i));
  world.kill(2);
  form_broken(world);
  world.pass(20);
  EXPECT_FALSE(world.running(0) || world.running(1));
  world.away = false;
  world.pass(20);
  EXPECT_TRUE(world.running(0) && world.running(1));
  // A member that waits outside does not stop a group while the authority is away.
  world.away = true;
  world.pass(2);
  world.start(2);
  world.form(2);
  world.pass(20);
  EXPECT_FALSE(world.assembly(0).wants_regroup());
  world.away = false;
  world.pass(2);
  EXPECT_TRUE(world.assembly(0).wants_regroup());
}

TEST(WithAnAuthority, ALostAnswerStartsTheGroupWhenItIsAskedAgain) {
  World world(2, registered());
  world.start_all();
  world.form_all();
  ASSERT_TRUE(world.work(0));  // reads
  while (world.cell.group().number == 0) {
    world.loses = world.at(0).question && world.at(0).question->swap;
    (void)world.deliver([](size_t) { return 0; });
    (void)world.work_all();
  }
  EXPECT_FALSE(world.running(0));
  const Group swapped = world.cell.group();
  world.loses = false;
  world.pass(2);
  ASSERT_TRUE(world.running(0) && world.running(1));
  EXPECT_EQ(world.assembly(0).group(), swapped);
}

TEST(WithAnAuthority, AProposerThatDiesAfterItsSwapLeavesTheOthersAbleToGoOn) {
  World world(2, registered());
  world.start_all();
  world.form_all();
  while (world.cell.group().number == 0) {
    (void)world.deliver([](size_t) { return 0; });
    (void)world.work_all();
  }
  world.kill(0, false);
  world.pass(70);  // nobody has trained, so it waits for the start
  EXPECT_TRUE(world.running(1));
}

TEST(WithAnAuthority, ARegisterThatLostItsDataEndsTheForming) {
  World world = running(2, registered());
  ASSERT_EQ(world.assembly(0).group().number, 1U);
  world.cell = authority::Cell();
  world.kill(1);
  form_broken(world);
  world.pass(5);
  EXPECT_EQ(world.assembly(0).failure(), "the register has lost data: it holds group 0 after group 1");
}

TEST(WithAnAuthority, AnAnswerFromBeforeItsGroupIsNoLossOfData) {
  World world = running(2, registered());
  const Group before = world.cell.group();
  world.assembly(1).begin_check(world.now());
  ASSERT_TRUE(world.assembly(1).take_question());
  world.form_all();
  world.settle();
  ASSERT_EQ(world.assembly(1).group().number, before.number + 1);
  world.form_all();
  world.assembly(1).answered({authority::Outcome::present, before, {}}, world.now());
  EXPECT_EQ(world.assembly(1).failure(), "");
  world.pass(1);
  EXPECT_EQ(world.assembly(1).group().number, before.number + 2);
}

TEST(WithAnAuthority, ARefusalEndsTheFormingWithItsReason) {
  World world(2, registered());
  world.refuses = "wrong password";
  world.start_all();
  world.form_all();
  world.settle();
  EXPECT_EQ(world.assembly(0).failure(), "the register: wrong password");
}

}  // namespace
}  // namespace lockstep::allreduce::elastic::testing
