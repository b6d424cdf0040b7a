// What a server decides, call by call: which streams are answered while updates are made, and what they hear.
#include "ps/job.h"

#include <gmock/gmock.h>

#include "wire/data_messages.h"

namespace lockstep::ps {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr uint64_t kBatch = 4;
constexpr uint64_t kFirstProcess = 10;

CoordinatorOptions two_workers(int servers) {
  CoordinatorOptions options;
  options.members = 2;
  options.servers = servers;
  options.sync = false;
  options.batch = kBatch;
  options.examples = 100;
  return options;
}

/// A server with streams of two asynchronous workers, which have its parameters.
class AServer {
 public:
  AServer(int index, const CoordinatorOptions& options) : job(named(index, options.servers), 0) {
    to_wire(options, config_);
    to_wire(Rules(), *config_.mutable_optimizer());
    for (int i = 0; i < options.members; ++i) ids.push_back(job.open(hello(i), 0));
    set(0);
    for (const SessionId id : ids) {
      job.greeted(id);
      if (job.coordinates()) plans_.push_back(joined(id));
    }
    static_cast<void>(job.orders());
  }

  /// The chief sets the parameters, for the first time or again.
  void set(uint64_t version) {
    config_.set_generation(config_.generation() + 1);
    job.set_parameters(ids.front(), config_, version, job.coordinator_for(config_, version, {}, 0));
    job.parameters_set(0);
  }
  /// The first push of a worker is here, and its stream waits.
  void push(int worker) {
    const auto i = static_cast<size_t>(worker);
    Push push{worker, kFirstProcess + i, 1, 0, 0, 1, {1, 0, kBatch}};
    if (job.coordinates()) push.plan = plans_[i];
    EXPECT_EQ(job.push(ids[i], push, std::make_shared<std::vector<float>>(1), 1), Verdict::accepted);
    job.wait(ids[i], {Wait::decision});
  }
  /// ps:0 announces the first push of a worker.
  void announce(uint64_t version, int worker) {
    wire::Commit commit;
    to_wire(Decision{version, {{worker, kFirstProcess + static_cast<uint64_t>(worker), 1, 1}}, 1}, commit);
    commit.set_generation(config_.generation());
    job.announced(commit, 0);
  }
  Update begin() {
    Update update = job.next(0).value();
    job.begin(update, 0);
    return update;
  }

  Job job;
  std::vector<SessionId> ids;  ///< by worker

 private:
  static JobOptions named(int index, int servers) {
    JobOptions options;
    options.index = index;
    options.members = {"worker:0", "worker:1"};
    for (int i = 0; i < servers; ++i) options.servers.push_back("ps:" + std::to_string(i));
    return options;
  }
  static wire::Hello hello(int worker) {
    wire::Hello hello;
    hello.set_role("worker:" + std::to_string(worker));
    hello.set_member(worker);
    hello.set_incarnation(kFirstProcess + static_cast<uint64_t>(worker));
    return hello;
  }
  uint64_t joined(SessionId id) {
    job.join(id, 0, 0);
    return from_wire(job.join_reply(id).plan()).id;
  }

  wire::JobConfig config_;
  std::vector<uint64_t> plans_;  ///< by worker
};

TEST(AsyncAnswers, DoNotWaitForTheUpdateOfAnotherWorker) {
  AServer server(0, two_workers(1));
  server.push(0);
  server.push(1);
  server.job.finish(server.begin(), 0);
  const Update second = server.begin();
  EXPECT_TRUE(server.job.over(server.ids[0]));
  EXPECT_FALSE(server.job.over(server.ids[1])) << "its update is not stored yet";
  EXPECT_EQ(server.job.reply(server.ids[0]).examples_total(), kBatch) << "the second update is not stored yet";
  server.job.finish(second, 0);
  EXPECT_TRUE(server.job.over(server.ids[1]));
  EXPECT_EQ(server.job.reply(server.ids[1]).examples_total(), 2 * kBatch);
}

TEST(AsyncAnswers, OfAnotherServerDoNotWaitEither) {
  AServer server(1, two_workers(2));
  for (const int worker : {0, 1}) server.push(worker);
  server.announce(1, 1);
  server.announce(2, 0);
  EXPECT_FALSE(server.job.over(server.ids[1]));
  server.job.finish(server.begin(), 0);
  const Update second = server.begin();
  EXPECT_TRUE(server.job.over(server.ids[1]));
  EXPECT_FALSE(server.job.over(server.ids[0]));
  server.job.finish(second, 0);
  EXPECT_TRUE(server.job.over(server.ids[0]));
}

TEST(AsyncAnswers, TellOfTheEndOnceItIsStored) {
  CoordinatorOptions options = two_workers(1);
  options.limit_steps = 2;
  AServer server(0, options);
  server.push(0);
  server.push(1);
  server.job.finish(server.begin(), 0);
  const Update last = server.begin();
  EXPECT_FALSE(server.job.over(server.ids[0]));
  server.job.finish(last, 0);
  EXPECT_TRUE(server.job.over(server.ids[0]));
  EXPECT_EQ(server.job.reply(server.ids[0]).stop(), static_cast<uint32_t>(train::StopReason::steps));
}

TEST(AsyncUpdates, AreMadeInTheOrderOfTheirPushes) {
  AServer server(0, two_workers(1));
  server.push(1);
  server.push(0);
  const Update first = server.begin();
  EXPECT_EQ(first.decision.contributors.front().member, 1);
  server.job.finish(first, 0);
  EXPECT_EQ(server.begin().decision.contributors.front().member, 0);
}

/// Else a busy server would never answer it: at each end of an update another one begins.
TEST(AsyncUpdates, ComeAfterTheAnswerOfWhoWaitsForAMomentWithoutOne) {
  AServer server(0, two_workers(1));
  server.push(0);
  server.push(1);
  const Update first = server.begin();
  server.job.wait(server.ids[0], {Wait::snapshot});
  EXPECT_FALSE(server.job.over(server.ids[0]));
  server.job.finish(first, 0);
  EXPECT_TRUE(server.job.over(server.ids[0]));
  EXPECT_FALSE(server.job.next(0).has_value());
  server.job.wait(server.ids[0], {});
  EXPECT_TRUE(server.job.next(0).has_value());
}

TEST(ParametersSetAgain, EndTheStreamsThatKnowTheEarlierOnes) {
  AServer server(0, two_workers(1));
  server.set(7);
  EXPECT_FALSE(server.job.gone(server.ids[0])) << "the chief has set them";
  EXPECT_TRUE(server.job.gone(server.ids[1]));
  EXPECT_THAT(server.job.orders().dropped, ElementsAre(Pair(server.ids[1], "the parameters were set again")));
}

TEST(ParametersSetAgain, DoNotCountAnUpdateOfTheEarlierOnes) {
  for (const int index : {0, 1}) {
    AServer server(index, two_workers(2));
    server.push(0);
    wire::Received received;
    received.set_incarnation(kFirstProcess);
    received.set_sequence(1);
    received.set_generation(1);
    if (index == 0) server.job.received(1, received);
    if (index == 1) server.announce(1, 0);
    const Update update = server.begin();
    server.set(7);
    EXPECT_FALSE(server.job.updating());
    server.job.finish(update, 0);
    EXPECT_EQ(server.job.version(), 7U);
    EXPECT_THAT(server.job.orders().announced, IsEmpty());
    EXPECT_FALSE(server.job.next(100));
  }
}

/// What ps:1, which has lost the push of worker:1, is told when it is back.
Decision told_again(bool replaced) {
  Coordinator coordinator(two_workers(2), 0, {}, 0);
  coordinator.join(1, kFirstProcess);
  const uint64_t plan = coordinator.unseen_plan(1, 0)->id;
  EXPECT_EQ(coordinator.offer({1, kFirstProcess, 1, 0, plan, 1, {1, 0, kBatch}}), Verdict::accepted);
  coordinator.received(1, 1, kFirstProcess, 1);
  coordinator.committed(coordinator.decide().value());
  if (replaced) {
    coordinator.depart(1, kFirstProcess);
    coordinator.join(1, kFirstProcess + 1);
  }
  wire::Commit sent;
  to_wire(coordinator.missed(0)->front(), sent);
  return from_wire(sent);
}

TEST(LostGradients, AreAwaitedOnlyWhileTheirWorkerMaySendThemAgain) {
  Follower waits(0, {});
  waits.announced(told_again(false), 100);
  EXPECT_FALSE(waits.next(100 + kLostGradient - 1));
  ASSERT_TRUE(waits.next(100 + kLostGradient));
  Follower goes_on(0, {});
  goes_on.announced(told_again(true), 100);
  ASSERT_TRUE(goes_on.next(100));
  EXPECT_THAT(goes_on.next(100)->missing, SizeIs(1));
}

}  // namespace
}  // namespace lockstep::ps
