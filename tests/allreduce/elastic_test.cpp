// Groups of members over real sockets: how they form, break, continue and end. Processes under kill -9 and SIGSTOP are
// in elastic_process_test.cpp.
#include <gmock/gmock.h>

#include "allreduce/elastic/checkpoint_follower.h"
#include "allreduce/elastic_support.h"
#include "lockstep/error.h"

namespace lockstep::allreduce {
namespace {

using testing::Cluster;
using testing::eventually;
using ::testing::HasSubstr;

TEST_F(Cluster, FormsAGroupOfAllAndTrains) {
  make(3);
  start_all();
  EXPECT_TRUE(trains({0, 1, 2}));
  EXPECT_EQ(at(0).number(), 1U);
}

TEST_F(Cluster, GoesOnWithoutOneThatIsGoneAndNamesIt) {
  make(3);
  start_all();
  ASSERT_TRUE(trains({0, 1, 2}));
  const uint64_t before = at(0).step;
  at(1).vanish();
  EXPECT_TRUE(trains({0, 2}));
  EXPECT_GE(at(0).step, before);
  EXPECT_THAT(at(0).transfers + at(2).transfers, ::testing::AnyOf(2, 4)) << "at the start; or one was a step ahead";
  EXPECT_TRUE(eventually([&] { return at(0).lines.has(name(1) + ": connection closed"); }))
      << ::testing::PrintToString(at(0).lines.get());
}

TEST_F(Cluster, OfManyMembersGoesOnWithoutOneThatPassesOnMessagesAndEnds) {
  make(11);
  for (int member = 10; member >= 0; --member) start(member);  // parents come later, and are changed to
  std::vector<int> all;
  std::vector<int> rest;
  for (int member = 0; member < 11; ++member) {
    all.push_back(member);
    if (member != 1) rest.push_back(member);
  }
  ASSERT_TRUE(trains(all)) << ::testing::PrintToString(at(0).lines.get());
  at(1).vanish();
  ASSERT_TRUE(trains(rest)) << ::testing::PrintToString(at(0).lines.get());
  EXPECT_TRUE(eventually([&] { return at(0).lines.has(name(1) + ": connection closed"); }));
  EXPECT_FALSE(at(10).lines.has(name(1) + ": connection closed")) << "one line is enough";
  start(1);
  ASSERT_TRUE(trains(all)) << ::testing::PrintToString(at(0).lines.get());
  at(7).finish = true;
  for (const int member : all) at(member).wait();
  EXPECT_TRUE(at(0).led);
}

TEST_F(Cluster, MetersCountWhatMembersTellEachOther) {
  std::array<base::TrafficMeter, 2> meters;
  change = [&](ElasticOptions& options) { options.meter = &meters[static_cast<size_t>(options.task.index)]; };
  make(2);
  start_all();
  ASSERT_TRUE(trains({0, 1}));
  for (const size_t i : {size_t{0}, size_t{1}}) {
    // Bytes are counted when they are sent; the other member may have received them by then.
    EXPECT_TRUE(eventually([&] {
      const base::TrafficMeter::Totals there = meters[1 - i].totals();
      const base::TrafficMeter::Totals here = meters[i].totals();
      return here.sent_bytes >= there.received_bytes && here.sent_messages >= there.received_messages;
    })) << i;
    EXPECT_GE(meters[i].totals().sent_messages, 3U) << "a greeting, where it stands, a group";
    EXPECT_GE(meters[i].totals().received_messages, 3U);
  }
  members.clear();  // before the meters, which they use
}

TEST_F(Cluster, GoesOnWithoutItsLeader) {
  make(3);
  start_all();
  ASSERT_TRUE(trains({0, 1, 2}));
  at(0).vanish();
  EXPECT_TRUE(trains({1, 2}));
}

TEST_F(Cluster, TheLastOneWaitsForAnotherOne) {
  make(3);
  start_all();
  ASSERT_TRUE(trains({0, 1, 2}));
  at(0).vanish();
  at(1).vanish();
  start(1);
  EXPECT_TRUE(trains({1, 2}));
}

TEST_F(Cluster, LetsInWhoComesBack) {
  make(3);
  start_all();
  ASSERT_TRUE(trains({0, 1, 2}));
  at(0).vanish();
  ASSERT_TRUE(trains({1, 2}));
  const uint64_t before = at(1).step;
  start(0);
  ASSERT_TRUE(trains({0, 1, 2}));
  EXPECT_GT(at(0).step, before) << "it goes on where the others are";
}

TEST_F(Cluster, EndsTogether) {
  make(3);
  start_all();
  ASSERT_TRUE(trains({0, 1, 2}));
  at(2).finish = true;
  for (int i = 0; i < 3; ++i) at(i).wait();
  EXPECT_TRUE(at(0).led);
  EXPECT_FALSE(at(1).led || at(2).led);
}

TEST_F(Cluster, ANewLeaderClosesWhenTheFirstDies) {
  make(3);
  start_all();
  ASSERT_TRUE(trains({0, 1, 2}));
  at(0).hold_end = true;
  at(0).finish = true;
  ASSERT_TRUE(eventually([&] { return at(0).led.load(); }));
  EXPECT_FALSE(at(1).led);
  at(0).vanish();
  at(1).wait();
  at(2).wait();
  EXPECT_TRUE(at(1).led);
  EXPECT_FALSE(at(2).led);
}

TEST_F(Cluster, WhoComesDuringTheEndHearsThatItIsOver) {
  make(2);
  start_all();
  ASSERT_TRUE(trains({0, 1}));
  at(1).vanish();
  ASSERT_TRUE(trains({0}));
  at(0).hold_end = true;
  at(0).finish = true;
  ASSERT_TRUE(eventually([&] { return at(0).led.load(); }));
  start(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(at(1).failure(), "") << "not all is written yet";
  at(0).hold_end = false;
  at(1).wait();
  EXPECT_THAT(at(1).failure(), HasSubstr("training is over"));
  EXPECT_TRUE(at(1).membership->over());
  at(0).wait();
}

TEST_F(Cluster, AnInterruptEndsTheWaitForOthers) {
  make(2);
  start(1);
  ASSERT_TRUE(eventually([&] { return at(1).membership != nullptr; }));
  at(1).interrupt = true;
  at(1).wait();
  EXPECT_THAT(at(1).failure(), HasSubstr("interrupted"));
}

TEST_F(Cluster, WhereOneIsEnoughAnInterruptEndsAllNevertheless) {
  change = [](ElasticOptions& options) { options.allow_split = true; };
  make(3);
  start_all();
  ASSERT_TRUE(trains({0, 1, 2}));
  at(0).interrupt = true;  // its step is not made: it leaves while the next group is formed
  for (int i = 0; i < 3; ++i) at(i).wait();
  EXPECT_THAT(at(0).failure(), HasSubstr("interrupted while forming a group"));
  for (const int i : {1, 2}) {
    EXPECT_THAT(at(i).failure(), HasSubstr("another member was interrupted"));
    EXPECT_TRUE(at(i).membership->interrupted());
  }
}

TEST_F(Cluster, WhoFindsSignsOfTheEndAndNobodyElseEnds) {
  change = [](ElasticOptions& options) {
    options.look_for_ending = [] { return exchange::Ending{train::StopReason::interrupted, 900}; };
  };
  make(2);
  start(1);
  at(1).wait();
  EXPECT_THAT(at(1).failure(), HasSubstr("training is over"));
  EXPECT_TRUE(at(1).membership->over());
  EXPECT_TRUE(at(1).membership->interrupted());
}

TEST_F(Cluster, AMemberOfAnotherJobIsRefusedAndToldWhy) {
  make(2);
  start(0);
  change = [](ElasticOptions& o) { o.job = "another job"; };
  start(1);
  at(1).wait();
  EXPECT_THAT(at(1).failure(),
              HasSubstr(name(0) + " refused worker:1: worker:1 and worker:0 differ in model, data or settings"));
  EXPECT_TRUE(eventually([&] { return at(0).lines.has("worker:1 and worker:0 differ in model, data or settings"); }));
}

TEST_F(Cluster, TheRunsNameIsToldToWhoAsks) {
  make(2);
  start(0);
  ElasticOptions asks = options(1);
  const base::Result<std::string> run = ask_run_name(asks);
  ASSERT_TRUE(run.ok()) << run.failure().message();
  EXPECT_EQ(run.value(), "lenet-3");
}

TEST_F(Cluster, NobodyToAskIsAFailureThatNamesThem) {
  make(2);
  ElasticOptions asks = options(1);
  asks.patience = 0.2;
  const base::Result<std::string> run = ask_run_name(asks);
  ASSERT_FALSE(run.ok());
  EXPECT_THAT(run.failure().message(), HasSubstr(name(0) + ": connection refused"));
}

TEST_F(Cluster, AnEvaluatorFollowsTheLeaderWhoeverThatIs) {
  make(3, true);
  start_all();
  ASSERT_TRUE(trains({0, 1, 2}));
  ElasticOptions asks = options(0);
  asks.task = {cluster::Role::evaluator, 0};
  CheckpointFollower follower(asks);
  std::vector<float> parameters(3);
  const std::optional<uint64_t> first = follower.next(0, parameters);
  ASSERT_TRUE(first);
  EXPECT_THAT(parameters, ::testing::Each(static_cast<float>(*first)));
  EXPECT_EQ(at(0).membership->evaluator_stop(), train::StopReason::none);
  follower.stop(train::StopReason::accuracy);
  EXPECT_EQ(at(0).membership->evaluator_stop(), train::StopReason::accuracy);
  at(0).vanish();
  ASSERT_TRUE(trains({1, 2}));
  uint64_t step = at(1).step;
  const std::optional<uint64_t> next = follower.next(step, parameters);
  ASSERT_TRUE(next);
  EXPECT_GT(*next, step);
  EXPECT_THAT(parameters, ::testing::Each(static_cast<float>(*next)));
  EXPECT_EQ(at(1).membership->evaluator_stop(), train::StopReason::accuracy) << "it is said again";
  at(1).finish = true;
  while (const auto more = follower.next(step, parameters)) step = *more;
  for (const int member : {1, 2}) at(member).wait();
}

TEST_F(Cluster, AnEvaluatorOfAnotherModelIsToldSo) {
  make(1, true);
  start_all();
  ASSERT_TRUE(trains({0}));
  ElasticOptions asks = options(0);
  asks.task = {cluster::Role::evaluator, 0};
  CheckpointFollower follower(asks);
  std::vector<float> parameters(4);
  EXPECT_THROW(follower.next(0, parameters), DataError);
}

}  // namespace
}  // namespace lockstep::allreduce
