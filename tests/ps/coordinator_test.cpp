// The coordinator's rules, one by one: how versions are made, membership, bounded staleness.
#include "ps/coordinator.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "ps/coordinator_support.h"
#include "ps/silence.h"

namespace lockstep::ps::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using State = Player::State;

std::vector<int> members_of(const Decision& decision) {
  std::vector<int> members;
  for (const Contributor& c : decision.contributors) members.push_back(c.member);
  return members;
}

std::vector<float> weights_of(const Decision& decision) {
  std::vector<float> weights;
  for (const Contributor& c : decision.contributors) weights.push_back(c.weight);
  return weights;
}

// Synchronous updates.

TEST(Sync, AVersionTakesOneGradientOfEachInWorkerOrder) {
  Play play(job(true, 3));
  play.come_all();
  for (const int number : {2, 0}) play.step(number);
  EXPECT_EQ(play.coordinator->version(), 0U);
  EXPECT_THAT(play.coordinator->awaited(), ElementsAre(1));
  play.step(1);
  EXPECT_EQ(play.coordinator->version(), 1U);
  EXPECT_THAT(members_of(play.decisions.front()), ElementsAre(0, 1, 2));
}

TEST(Sync, WithBackupsTheFirstToComeMakeTheVersionAndTheLateOneIsDropped) {
  CoordinatorOptions options = job(true, 3);
  options.aggregate = 2;
  Play play(options);
  play.come_all();
  for (const int number : {2, 1}) play.step(number);
  EXPECT_THAT(members_of(play.decisions.front()), ElementsAre(1, 2));
  const Books before = play.books;
  EXPECT_EQ(play.step(0), Verdict::dropped);
  EXPECT_EQ(play.books, before);
  EXPECT_EQ(play.coordinator->record(0).dropped, 1U);
  EXPECT_EQ(play.coordinator->record(0).updates, 0U);
}

TEST(Sync, ADroppedBatchIsComputedAgainOnTheNewVersion) {
  CoordinatorOptions options = job(true, 3);
  options.aggregate = 2;
  Play play(options);
  play.come_all();
  play.step(1);
  play.step(2);
  play.step(0);
  const std::vector<data::PassPart> dropped = play.player(0).batch;
  play.step(0);
  EXPECT_EQ(play.player(0).batch, dropped);
  EXPECT_EQ(play.player(0).push.base, 1U);
  run_in_turn(play);
  expect_exactly_once(play.books, 1, 40);
}

TEST(Sync, AStragglerThatIsAlwaysLateCannotKeepBackupsFromEnding) {
  CoordinatorOptions options = job(true, 3, 41);
  options.aggregate = 2;
  options.passes = 2;
  Play play(options);
  play.come_all();
  for (int i = 0; i < 10000 && !play.coordinator->all_done(); ++i) {
    // Worker 0 moves only if the others can do nothing without it.
    const auto ready = [&](int n) { return play.player(n).state == State::computing; };
    const int number = ready(1) ? 1 : ready(2) ? 2 : 0;
    if (ready(number)) play.step(number);
    play.wake();
  }
  EXPECT_TRUE(play.coordinator->all_done());
  expect_exactly_once(play.books, 2, 41);
  // The others took over as much of its share of 28 as they could.
  EXPECT_LE(play.coordinator->record(0).examples, 16U);
}

TEST(Sync, MoreGradientsThanWorkersMeansSeveralBatchesOfEach) {
  CoordinatorOptions options = job(true, 3, 400);
  options.aggregate = 8;
  Play play(options);
  play.come_all();
  EXPECT_EQ(play.player(0).per_update, 3);
  EXPECT_EQ(play.player(1).per_update, 3);
  EXPECT_EQ(play.player(2).per_update, 2);
  for (const int number : {0, 1, 2}) play.step(number);
  EXPECT_EQ(play.coordinator->version(), 1U);
  EXPECT_EQ(play.books.size(), 8U * 4U);
  EXPECT_THAT(weights_of(play.decisions.front()), ElementsAre(1.0F, 1.0F, 8.0F / 12.0F));
}

TEST(Sync, WhoIsLeftOfTheBackupsComputesMoreSoThatAnUpdateStaysAsLarge) {
  CoordinatorOptions options = job(true, 3, 400);
  options.aggregate = 2;
  Play play(options);
  play.come_all();
  play.die(1);
  play.die(2);
  play.step(0);
  EXPECT_EQ(play.player(0).per_update, 2);
}

TEST(Sync, AWorkerWithNothingInTheLastRoundAddsNothing) {
  Play play(job(true, 3, 25));  // two rounds of 12, then one position
  play.come_all();
  run_in_turn(play);
  EXPECT_THAT(members_of(play.decisions.back()), ElementsAre(0));
  EXPECT_EQ(play.decisions.size(), 3U);
  EXPECT_EQ(play.coordinator->record(2).iterations, 2U);
  EXPECT_EQ(play.coordinator->record(2).examples, 8U);
  expect_exactly_once(play.books, 1, 25);
}

TEST(Sync, BackupsWithoutDataDoNotMakeAVersionByThemselves) {
  CoordinatorOptions options = job(true, 3, 13);  // a round of 12, then one position for worker 0
  options.aggregate = 2;
  Play play(options);
  play.come_all();
  for (const int number : {1, 2, 0}) play.step(number);
  ASSERT_EQ(play.coordinator->version(), 1U);
  for (const int number : {1, 2}) play.step(number);
  EXPECT_EQ(play.coordinator->version(), 1U);
  run_in_turn(play);
  expect_exactly_once(play.books, 1, 13);
}

TEST(Sync, MeansCountByTheirExamples) {
  Play play(job(true, 3, 11));  // 4, 4 and 3
  play.come_all();
  run_in_turn(play);
  const Decision& decision = play.decisions.front();
  EXPECT_THAT(weights_of(decision), ElementsAre(1.0F, 1.0F, 0.75F));
  EXPECT_FLOAT_EQ(decision.mean_scale, 4.0F / 11.0F);
}

TEST(Sync, MeansOfSummedLossesCountByWorkersAndSumsAreLeftAlone) {
  CoordinatorOptions options = job(true, 3, 11);
  options.mean_loss = false;
  Play means(options);
  means.come_all();
  run_in_turn(means);
  EXPECT_THAT(weights_of(means.decisions.front()), ElementsAre(1.0F, 1.0F, 1.0F));
  EXPECT_FLOAT_EQ(means.decisions.front().mean_scale, 1.0F / 3.0F);

  for (const bool mean_loss : {false, true}) {
    options.mean = false;
    options.mean_loss = mean_loss;
    Play sums(options);
    sums.come_all();
    run_in_turn(sums);
    EXPECT_THAT(weights_of(sums.decisions.front()), ElementsAre(1.0F, 1.0F, 1.0F));
    EXPECT_FLOAT_EQ(sums.decisions.front().mean_scale, 1.0F);
  }
}

TEST(Sync, AVersionWaitsUntilEveryServerHasThePush) {
  CoordinatorOptions options = job(true, 1);
  options.servers = 3;
  Coordinator coordinator(options, 0, {}, 0);
  coordinator.join(0, 7);
  const data::Plan plan = *coordinator.unseen_plan(0, 0);
  EXPECT_EQ(coordinator.offer({0, 7, 1, 0, plan.id, 1, {1, 0, 4}}), Verdict::accepted);
  coordinator.received(1, 0, 7, 1);
  EXPECT_FALSE(coordinator.decide());
  coordinator.forget(1);  // the server was restarted and lost the gradient
  coordinator.received(2, 0, 7, 1);
  EXPECT_FALSE(coordinator.decide());
  coordinator.received(1, 0, 6, 1);  // from another process of the worker
  EXPECT_FALSE(coordinator.decide());
  coordinator.received(1, 0, 7, 1);
  EXPECT_TRUE(coordinator.decide());
}

TEST(Sync, AServerMayHaveAPushBeforeTheCoordinator) {
  CoordinatorOptions options = job(true, 1);
  options.servers = 2;
  Coordinator coordinator(options, 0, {}, 0);
  coordinator.join(0, 7);
  const data::Plan plan = *coordinator.unseen_plan(0, 0);
  coordinator.received(1, 0, 7, 1);
  EXPECT_FALSE(coordinator.decide());
  coordinator.offer({0, 7, 1, 0, plan.id, 1, {1, 0, 4}});
  EXPECT_TRUE(coordinator.decide());
}

TEST(Sync, AMemberThatAsksToJoinAgainStaysIn) {
  Coordinator coordinator(job(true, 2), 0, {}, 0);
  ASSERT_TRUE(coordinator.join(0, 7));
  ASSERT_TRUE(coordinator.join(1, 8));
  const data::Plan first = *coordinator.unseen_plan(0, 0);
  ASSERT_TRUE(coordinator.unseen_plan(1, 0));
  EXPECT_TRUE(coordinator.join(0, 7));  // the answer was lost, or another server was killed
  const std::optional<data::Plan> again = coordinator.unseen_plan(0, 0);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id, first.id);
  ASSERT_EQ(coordinator.offer({1, 8, 1, 0, first.id, 1, {1, 0, 4}}), Verdict::accepted);
  EXPECT_FALSE(coordinator.decide());  // not without it
  ASSERT_EQ(coordinator.offer({0, 7, 1, 0, first.id, 1, {1, 0, 4}}), Verdict::accepted);
  ASSERT_TRUE(coordinator.decide());
  EXPECT_EQ(coordinator.decide()->contributors.size(), 2U);
}

TEST(Sync, APlanWhoseAnswerWasLostIsToldAgain) {
  Coordinator coordinator(job(true, 2), 0, {}, 0);
  coordinator.join(0, 7);
  coordinator.join(1, 8);
  const uint64_t before = coordinator.unseen_plan(0, 0)->id;
  ASSERT_TRUE(coordinator.unseen_plan(1, 0));
  const Push push{0, 7, 1, 0, before, 1, {1, 0, 4}};
  ASSERT_EQ(coordinator.offer(push), Verdict::accepted);
  coordinator.depart(1, 8);  // the next version comes with a new plan
  coordinator.committed(*coordinator.decide());
  const uint64_t after = coordinator.unseen_plan(0, before)->id;
  ASSERT_NE(after, before);
  // Its connection broke before the answer arrived, so it pushes again.
  ASSERT_EQ(coordinator.offer(push), Verdict::repeated);
  const std::optional<data::Plan> again = coordinator.unseen_plan(0, before);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->id, after);
  EXPECT_EQ(coordinator.offer({0, 7, 2, 1, after, 1, {1, 0, 4}}), Verdict::accepted);
  EXPECT_FALSE(coordinator.unseen_plan(0, after)) << "it knows it";
}

TEST(Sync, WhoDoesNotKnowThePlanOfTheNextVersionJoinsAnew) {
  Coordinator coordinator(job(true, 2), 0, {}, 0);
  coordinator.join(0, 7);
  coordinator.join(1, 8);
  const uint64_t before = coordinator.unseen_plan(0, 0)->id;
  ASSERT_EQ(coordinator.offer({0, 7, 1, 0, before, 1, {1, 0, 4}}), Verdict::accepted);
  coordinator.depart(1, 8);
  coordinator.committed(*coordinator.decide());
  // The other servers would wait for a version that itself waits for this push.
  EXPECT_EQ(coordinator.offer({0, 7, 2, 1, before, 1, {1, 0, 4}}), Verdict::rejoin);
}

// Membership.

TEST(Membership, AnExpectedMemberTakesTheShareThatWaitsForIt) {
  Play play(job(true, 2));
  play.come(0);
  const data::Plan plan = play.player(0).plan;
  EXPECT_EQ(plan.shard.count, 2);
  play.step(0);
  EXPECT_EQ(play.coordinator->version(), 0U);
  play.come(1);
  EXPECT_EQ(play.player(1).state, State::computing);
  EXPECT_EQ(play.player(1).plan.id, plan.id);
  EXPECT_EQ(play.player(1).plan.shard.index, 1);
}

TEST(Membership, WhoDoesNotComeInTimeIsNotWaitedFor) {
  CoordinatorOptions options = job(true, 3);
  options.start_wait = 60;
  Play play(options);
  EXPECT_THAT(play.coordinator->expire(100, false), IsEmpty());  // no active member waits
  play.come(0);
  play.come(2);
  play.step(0);
  play.step(2);
  EXPECT_THAT(play.coordinator->expire(59), IsEmpty());
  EXPECT_EQ(play.coordinator->version(), 0U);
  EXPECT_THAT(play.coordinator->expire(61), ElementsAre(1));
  play.settle();
  EXPECT_EQ(play.coordinator->version(), 1U);
  EXPECT_EQ(play.player(0).plan.shard.count, 2);
  run_in_turn(play);
  expect_exactly_once(play.books, 1, 40);
}

TEST(Membership, InSyncAJoinerEntersWithTheNextVersion) {
  Play play(job(true, 2));
  play.come_all();
  play.die(1);
  play.come(1);
  EXPECT_EQ(play.player(1).state, State::asking);
  play.step(0);
  EXPECT_EQ(play.coordinator->version(), 1U);
  EXPECT_EQ(play.player(1).state, State::computing);
  EXPECT_EQ(play.player(1).version, 1U);
  EXPECT_EQ(play.player(0).plan.id, play.player(1).plan.id);
}

TEST(Membership, AJoinerIsLetInWhenNobodyIsLeftToMakeTheNextVersion) {
  for (const bool dies : {true, false}) {
    Play play(job(true, 2, 8));
    play.come_all();
    play.die(1);
    play.come(1);
    ASSERT_EQ(play.player(1).state, State::asking);
    if (dies) {
      play.die(0);
    } else {
      play.finish(play.player(0), StopReason::data);
    }
    EXPECT_EQ(play.player(1).state, State::computing) << (dies ? "died" : "finished");
  }
}

TEST(Membership, ADeathLetsTheVersionGoOnWithThoseWhoLive) {
  Play play(job(true, 3));
  play.come_all();
  play.step(0);
  play.step(1);
  const uint64_t before = play.coordinator->membership();
  play.die(2);
  EXPECT_EQ(play.coordinator->version(), 1U);
  EXPECT_GT(play.coordinator->membership(), before);
  EXPECT_EQ(play.player(0).plan.shard.count, 2);
  run_in_turn(play);
  expect_exactly_once(play.books, 1, 40);
}

TEST(Membership, APushOfADeadProcessOrOneThatNeverJoinedCountsForNothing) {
  Play play(job(false, 2));
  play.come_all();
  play.compute(play.player(1));
  const Push late = play.player(1).push;
  play.die(1);
  EXPECT_EQ(play.coordinator->offer(late), Verdict::rejoin);
  play.come(1);
  EXPECT_EQ(play.coordinator->offer(late), Verdict::rejoin);
  EXPECT_FALSE(play.coordinator->depart(1, late.incarnation));  // its earlier process's death is reported late
  EXPECT_TRUE(play.coordinator->takes_part(1, play.player(1).incarnation));
}

TEST(Membership, WhatADeadWorkerWasComputingIsGivenToOthersAtOnceInAsync) {
  Play play(job(false, 2));
  play.come_all();
  play.compute(play.player(0));
  play.compute(play.player(1));
  play.die(1);
  EXPECT_EQ(play.send(play.player(0)), Verdict::accepted);  // a batch of the earlier plan stays its own
  EXPECT_EQ(play.player(0).plan.shard.count, 1);
  run_in_turn(play);
  expect_exactly_once(play.books, 1, 40);
}

TEST(Membership, WhoFinishedIsNeededAgainForWhatADeadOneLeft) {
  Play play(job(false, 2));
  play.come_all();
  while (play.player(0).state == State::computing) play.step(0);
  ASSERT_EQ(play.player(0).state, State::finished);
  EXPECT_FALSE(play.coordinator->needed_again(0));  // worker 1 still works on it
  EXPECT_FALSE(play.coordinator->all_done());
  play.die(1);
  EXPECT_FALSE(play.coordinator->all_done());
  EXPECT_TRUE(play.coordinator->needed_again(0));
  run_in_turn(play);
  expect_exactly_once(play.books, 1, 40);
  EXPECT_FALSE(play.coordinator->needed_again(0));
}

TEST(Membership, EmptyRoundsOfAnOldPlanAreNotCountedInANewOne) {
  // Worker 1 has no data in the last round and says so when it leaves, after worker 0 died and there is a new plan.
  Play play(job(false, 2, 9));
  play.come_all();
  play.step(1);
  Player& one = play.player(1);
  ASSERT_EQ(one.plan.round(1).count, 0);
  one.rounds = 1;
  play.die(0);
  play.finish(one, StopReason::data);
  run_in_turn(play);
  expect_exactly_once(play.books, 1, 9);
}

// Asynchronous updates.

TEST(Async, EveryPushIsAVersionAndItsStalenessIsCounted) {
  Play play(job(false, 2));
  play.come_all();
  play.compute(play.player(1));
  play.step(0);
  play.step(0);
  play.send(play.player(1));
  EXPECT_EQ(play.coordinator->version(), 3U);
  EXPECT_EQ(play.coordinator->latest_staleness(1), 2U);
  EXPECT_THAT(play.coordinator->record(1).staleness, ElementsAre(0, 0, 1));
  EXPECT_THAT(play.coordinator->record(0).staleness, ElementsAre(2));
}

TEST(Async, APushThatWasAppliedIsNotAppliedAgain) {
  Play play(job(false, 1));
  play.come(0);
  play.step(0);
  EXPECT_EQ(play.coordinator->offer(play.player(0).push), Verdict::repeated);
  play.restart_coordinator();
  EXPECT_EQ(play.coordinator->offer(play.player(0).push), Verdict::repeated);
  EXPECT_EQ(play.coordinator->version(), 1U);
}

TEST(Async, APushOfOtherBatchesThanItsOwnCountsForNothing) {
  Play play(job(false, 2));
  play.come_all();
  play.compute(play.player(0));
  const Push fine = play.player(0).push;
  for (const int64_t rounds : {INT64_C(-1), INT64_C(0), INT64_C(2), INT64_C(1) << 40}) {
    Push push = fine;
    push.rounds = rounds;
    EXPECT_EQ(play.coordinator->offer(push), Verdict::rejoin) << rounds;
  }
  for (const uint64_t examples : {uint64_t{0}, uint64_t{5}, UINT64_MAX}) {
    Push push = fine;
    push.report.examples = examples;
    EXPECT_EQ(play.coordinator->offer(push), Verdict::rejoin) << examples;
  }
  Push push = fine;
  push.plan += 1;
  EXPECT_EQ(play.coordinator->offer(push), Verdict::rejoin);
  EXPECT_EQ(play.coordinator->offer(fine), Verdict::accepted);
}

TEST(Async, AccumulationThatEndsWithThePassLosesNothingWhenThePlanChanges) {
  CoordinatorOptions options = job(false, 2, 24, 4);  // three rounds each, two per push
  options.accumulate = 2;
  options.passes = 2;
  Play play(options);
  play.come_all();
  play.step(0);
  play.compute(play.player(0));  // the last batch of the pass, alone
  play.die(1);
  play.send(play.player(0));
  run_in_turn(play);
  expect_exactly_once(play.books, 2, 24);
}

// Bounded staleness.

/// Runs until the end while the fastest worker goes as far ahead as it may.
void expect_bound(int64_t bound, int members) {
  CoordinatorOptions options = job(false, members, 400, 4);
  options.max_staleness = bound;
  Play play(options);
  play.come_all();
  const auto clock = [&](int n) { return static_cast<int64_t>(play.coordinator->record(n).iterations); };
  uint64_t state = 1;
  int64_t furthest = 0;
  for (int i = 0; i < 3000 && !play.coordinator->all_done(); ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    const int number = static_cast<int>((state >> 33U) % static_cast<uint64_t>(members));
    // Worker 0 is fast: it moves whenever it may.
    for (const int n : {0, 0, 0, number}) {
      if (play.player(n).state != State::computing) continue;
      int64_t slowest = INT64_MAX;
      for (int m = 0; m < members; ++m) {
        if (!play.coordinator->finished(m)) slowest = std::min(slowest, clock(m));
      }
      ASSERT_LE(clock(n), slowest + bound);
      furthest = std::max(furthest, clock(n) - slowest);
      play.step(n);
    }
  }
  EXPECT_TRUE(play.coordinator->all_done());
  EXPECT_EQ(furthest, bound);  // the bound is reached
  expect_exactly_once(play.books, 1, 400);
}

TEST(BoundedStaleness, NobodyIsEverMoreThanTheBoundAhead) {
  for (const int64_t bound : {0, 1, 3}) expect_bound(bound, 3);
}

TEST(BoundedStaleness, ZeroIsABarrier) {
  CoordinatorOptions options = job(false, 2);
  options.max_staleness = 0;
  Play play(options);
  play.come_all();
  play.step(0);
  EXPECT_EQ(play.player(0).state, State::held);
  EXPECT_THAT(play.coordinator->awaited(), ElementsAre(1));
  play.step(1);
  EXPECT_EQ(play.player(0).state, State::computing);
  EXPECT_EQ(play.player(1).state, State::computing);
}

TEST(BoundedStaleness, AJoinerStartsAtTheSlowestOnesClock) {
  CoordinatorOptions options = job(false, 3, 400, 4);
  options.max_staleness = 2;
  Play play(options);
  play.come_all();
  play.die(2);
  for (int i = 0; i < 5; ++i) {
    play.step(0);
    play.step(1);
  }
  play.step(0);
  play.come(2);
  play.step(0);
  EXPECT_EQ(play.player(0).state, State::computing);  // 2 ahead of both
  play.step(0);
  EXPECT_EQ(play.player(0).state, State::held);
  EXPECT_THAT(play.coordinator->awaited(), ElementsAre(1, 2));
}

TEST(Silence, IsNoticedUnlessThisProcessWasPausedItself) {
  Silence silence;
  silence.heard(100);
  double now = 100;
  for (; now < 105; ++now) EXPECT_FALSE(silence.look(now)) << now;
  EXPECT_EQ(silence.look(105), 5.0);
  silence.heard(105.5);
  for (now = 106; now < 110; ++now) EXPECT_FALSE(silence.look(now)) << now;
  EXPECT_FALSE(silence.look(120)) << "it did not look for ten seconds";
  EXPECT_FALSE(silence.look(121));
}

TEST(Awaited, IsTheServerThatLacksAPushAndNotItsWorker) {
  CoordinatorOptions options = job(true, 2);
  options.servers = 3;
  Play play(options);
  play.come_all();
  for (const int number : {0, 1}) {
    Player& p = play.player(number);
    play.compute(p);
    EXPECT_EQ(play.coordinator->offer(p.push), Verdict::accepted);
    play.coordinator->received(1, number, p.incarnation, p.push.sequence);
  }
  EXPECT_THAT(play.coordinator->awaited(), IsEmpty());
  EXPECT_THAT(play.coordinator->awaited_servers(), ElementsAre(2));
}

TEST(BoundedStaleness, TheDeadAndTheFinishedHoldNobodyUp) {
  CoordinatorOptions options = job(false, 3, 400, 4);
  options.max_staleness = 0;
  Play play(options);
  play.come_all();
  play.step(0);
  play.die(1);
  EXPECT_EQ(play.player(0).state, State::held);
  play.finish(play.player(2), StopReason::data);
  EXPECT_EQ(play.player(0).state, State::computing);
}

TEST(BoundedStaleness, WhoIsHeldBackWhileThePlanChangesGetsTheNewOne) {
  CoordinatorOptions options = job(false, 3, 41, 4);
  options.max_staleness = 0;
  Play play(options);
  play.come_all();
  play.step(0);
  play.die(1);
  play.step(2);
  EXPECT_EQ(play.player(0).plan.shard.count, 2);
  run_in_turn(play);
  expect_exactly_once(play.books, 1, 41);
  // It computes everything that was reserved for it, so no worker had to join again.
  EXPECT_EQ(play.coordinator->record(0).joins + play.coordinator->record(2).joins, 2U);
}

// Unsharded data.

TEST(NotSharded, EveryMemberSeesAllOfTheDataWhoeverElseDies) {
  for (const bool sync : {true, false}) {
    CoordinatorOptions options = job(sync, 2, 40, 4);
    options.sharded = false;
    Play play(options);
    play.come_all();
    for (int i = 0; i < 3; ++i) {
      play.step(0);
      play.step(1);
    }
    play.die(1);
    while (play.player(0).state == State::computing) play.step(0);
    EXPECT_EQ(play.coordinator->record(0).examples, 40U) << sync;
    EXPECT_TRUE(play.coordinator->all_done());
    EXPECT_FALSE(play.coordinator->needed_again(0));
    // It returns and continues at its position.
    play.come(1);
    while (play.player(1).state == State::computing) play.step(1);
    EXPECT_EQ(play.coordinator->record(1).examples, 40U) << sync;
  }
}

}  // namespace
}  // namespace lockstep::ps::testing
