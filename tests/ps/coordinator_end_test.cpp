// The coordinator's rules, one by one: how a job ends, and its ledger.
#include <gmock/gmock.h>

#include "lockstep/error.h"
#include "ps/coordinator.h"
#include "ps/coordinator_support.h"

namespace lockstep::ps::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using State = Player::State;

// The end.

TEST(End, WithStepsAllEndTogether) {
  for (const bool sync : {true, false}) {
    CoordinatorOptions options = job(sync, 3, 400, 4);
    options.passes = 0;
    options.limit_steps = 7;
    Play play(options);
    play.come_all();
    for (int i = 0; i < 100 && play.coordinator->stopped() == StopReason::none; ++i) {
      if (play.player(i % 3).state == State::computing) play.step(i % 3);
    }
    EXPECT_EQ(play.coordinator->version(), 7U);
    EXPECT_EQ(play.coordinator->stopped(), StopReason::steps);
    for (Player& p : play.players) {
      if (p.state != State::computing) continue;
      EXPECT_EQ(play.step(p.number), Verdict::stopped);
    }
    EXPECT_TRUE(play.coordinator->all_done());
    EXPECT_EQ(play.coordinator->version(), 7U);
  }
}

TEST(End, ARuleMetByOneEndsAll) {
  Play play(job(false, 3));
  play.come_all();
  play.finish(play.player(1), StopReason::accuracy);
  EXPECT_EQ(play.coordinator->stopped(), StopReason::accuracy);
  EXPECT_FALSE(play.coordinator->all_done());
  EXPECT_EQ(play.step(0), Verdict::stopped);
  play.step(2);
  EXPECT_TRUE(play.coordinator->all_done());
  EXPECT_FALSE(play.coordinator->needed_again(0));
}

TEST(End, WhoJoinsAfterTheStopLeavesForGood) {
  Play play(job(true, 2));
  play.come(0);
  play.come(1);
  play.die(1);
  play.coordinator->stop(StopReason::steps);
  play.come(1);
  play.finish(play.player(0), StopReason::steps);
  EXPECT_TRUE(play.coordinator->all_done());
}

TEST(End, TheFirstReasonToStopStays) {
  Play play(job(false, 2));
  play.come_all();
  play.coordinator->stop(StopReason::seconds);
  play.coordinator->stop(StopReason::accuracy);
  EXPECT_EQ(play.coordinator->stopped(), StopReason::seconds);
}

TEST(End, WhoJoinsAJobThatStopsIsToldSo) {
  Play play(job(true, 2));
  play.come(0);
  play.coordinator->stop(StopReason::interrupted);
  play.come(1);
  EXPECT_EQ(play.player(1).state, State::finished);
}

TEST(End, AStoppedJobDoesNotWaitForTheDead) {
  Play play(job(true, 3));
  play.come_all();
  play.coordinator->stop(StopReason::seconds);
  play.settle();
  for (Player& p : play.players) {
    if (p.number < 2 && p.state == State::computing) play.finish(p, StopReason::seconds);
  }
  EXPECT_FALSE(play.coordinator->all_done());
  play.die(2);
  EXPECT_TRUE(play.coordinator->all_done());
}

TEST(End, AnAsyncWorkerEndsWithItsOwnShareAndItsTimeIsKept) {
  Play play(job(false, 2));
  play.come_all();
  play.now = 5;
  while (play.player(0).state == State::computing) play.step(0);
  play.now = 9;
  while (play.player(1).state == State::computing) play.step(1);
  EXPECT_EQ(play.coordinator->record(0).finished_seconds, 5);
  EXPECT_EQ(play.coordinator->record(1).finished_seconds, 9);
}

// The ledger.

TEST(Ledger, KeepsWhatWasAppliedAndWhatIsLeft) {
  CoordinatorOptions options = job(false, 3, 100, 4);
  Play play(options);
  play.come_all();
  play.step(0);
  play.compute(play.player(2));
  play.die(1);  // makes a new plan while a batch of worker 2 is reserved
  play.step(0);
  const data::Remainder left = play.coordinator->remaining();
  wire::Ledger ledger;
  play.coordinator->save(ledger, 3);
  Coordinator again(options, ledger, 100);
  EXPECT_EQ(again.remaining(), left);
  EXPECT_EQ(again.version(), play.coordinator->version());
  EXPECT_EQ(again.examples(), play.coordinator->examples());
  EXPECT_EQ(again.record(0).updates, play.coordinator->record(0).updates);
  EXPECT_EQ(again.presence(1), Coordinator::Presence::gone);
  EXPECT_EQ(again.presence(0), Coordinator::Presence::absent);
  wire::Ledger twice;
  again.save(twice, 100);
  EXPECT_NEAR(twice.seconds(), 3, 1e-9);
}

TEST(Ledger, AfterARestartThoseWhoLivedTakePartAgainAtOnce) {
  Play play(job(true, 3));
  play.come_all();
  for (const int n : {0, 1, 2, 0}) play.step(n);
  play.restart_coordinator();
  for (const int n : {1, 2, 0}) {
    Player& p = play.player(n);
    play.ask(p);
    EXPECT_EQ(p.state, State::computing);
  }
  run_in_turn(play);
  expect_exactly_once(play.books, 1, 40);
}

TEST(Ledger, WhoDoesNotComeBackIsNotWaitedForLong) {
  Play play(job(true, 2));
  play.come_all();
  play.restart_coordinator();
  play.ask(play.player(0));
  play.step(0);
  EXPECT_THAT(play.coordinator->expire(1), IsEmpty());
  EXPECT_THAT(play.coordinator->expire(30), ElementsAre(1));
  play.settle();
  EXPECT_EQ(play.coordinator->version(), 1U);
}

TEST(Ledger, ADamagedOneIsNotGoneOnWith) {
  Play play(job(true, 2));
  wire::Ledger ledger;
  play.coordinator->save(ledger, 0);
  for (const int32_t place : {2, 1 << 30}) {
    wire::Ledger bad = ledger;
    bad.mutable_members(0)->set_place(place);
    EXPECT_THROW(Coordinator(play.options(), bad, 0), Error);
  }
  wire::Ledger bad = ledger;
  bad.mutable_members(0)->set_done(-1);
  EXPECT_THROW(Coordinator(play.options(), bad, 0), Error);
}

}  // namespace
}  // namespace lockstep::ps::testing
