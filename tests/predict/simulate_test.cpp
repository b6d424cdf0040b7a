#include "predict/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "lockstep/error.h"
#include "predict/machine.h"
#include "predict/network.h"
#include "predict/node_cpu.h"

namespace lockstep::predict {
namespace {

Link link_of(double rate) {
  Link link;
  link.rate = rate;
  link.latency = 0;
  link.overhead = 1;
  return link;
}

Node node_of(double cores, double rate = kUnlimited) { return {.name = "node", .cores = cores, .link = link_of(rate)}; }

/// Returns when each of some messages arrives, all sent at 0.
std::vector<double> arrivals(const std::vector<Node>& nodes,
                             const std::vector<std::tuple<int, int, double>>& messages) {
  Events events;
  Network network(events, nodes);
  std::vector<double> times(messages.size());
  for (size_t i = 0; i < messages.size(); ++i) {
    const auto& [from, to, bytes] = messages[i];
    network.send(static_cast<size_t>(from), static_cast<size_t>(to), bytes,
                 [&times, &events, i] { times[i] = events.now(); });
  }
  while (events.step()) {
  }
  return times;
}

TEST(Network, OneMessageTakesItsBytesOverTheSlowerLink) {
  EXPECT_NEAR(arrivals({node_of(1, 1e6), node_of(1, 4e6)}, {{0, 1, 1e6}})[0], 1, 0.001);
  EXPECT_NEAR(arrivals({node_of(1, 4e6), node_of(1, 1e6)}, {{0, 1, 1e6}})[0], 1, 0.001);
}

TEST(Network, LargeMessagesShareALinkEvenly) {
  const auto from_one = arrivals({node_of(1, 8e6), node_of(1), node_of(1)}, {{0, 1, 8e6}, {0, 2, 8e6}});
  EXPECT_NEAR(from_one[0], 2, 0.15);
  EXPECT_NEAR(from_one[1], 2, 0.001);
  const auto to_one = arrivals({node_of(1, 8e6), node_of(1, 8e6), node_of(1, 8e6)}, {{0, 2, 8e6}, {1, 2, 8e6}});
  EXPECT_NEAR(to_one[0], 2, 0.15);
  EXPECT_NEAR(to_one[1], 2, 0.001);
}

TEST(Network, SmallMessagesLeaveOneAfterTheOther) {
  const auto times = arrivals({node_of(1, 1e6), node_of(1), node_of(1)}, {{0, 1, 5e4}, {0, 2, 5e4}});
  EXPECT_NEAR(times[0], 0.05, 0.001);
  EXPECT_NEAR(times[1], 0.1, 0.001);
}

TEST(Network, ASlowReceiverDoesNotHoldUpTheOthers) {
  const auto times = arrivals({node_of(1, 1e6), node_of(1, 1e5), node_of(1, 1e6)}, {{0, 1, 1e6}, {0, 2, 1e6}});
  EXPECT_NEAR(times[0], 10, 0.2);
  EXPECT_NEAR(times[1], 1.1, 0.1) << "what waits for the slow one is not handed to the link";
}

TEST(Network, ATokenBucketPassesABurstAtOnce) {
  Node burst = node_of(1, 1e6);
  burst.link.burst = 5e5;
  Gate gate(burst.link);
  EXPECT_DOUBLE_EQ(gate.pass(10, 5e5), 10);
  EXPECT_DOUBLE_EQ(gate.pass(10, 5e5), 10.5);
  EXPECT_DOUBLE_EQ(gate.pass(11.5, 5e5), 11.5) << "the tokens of a pause are kept, as far as the bucket holds them";
  EXPECT_DOUBLE_EQ(gate.pass(11.5, 5e5), 12);
}

TEST(Network, ABucketHoldsAPacketUntilThereAreTokensForAllOfIt) {
  constexpr double kPacket = 65536;
  Node node = node_of(1, 1e6);
  node.link.burst = kPacket;
  // Each of two nodes sends a packet elsewhere, and then one to the last node, which leaves when there are tokens
  // again: at the same time. The last node's bucket is full by then and holds no more than one packet.
  const auto times =
      arrivals({node, node, node, node, node}, {{0, 2, kPacket}, {0, 4, kPacket}, {1, 3, kPacket}, {1, 4, kPacket}});
  EXPECT_NEAR(times[0], 0, 1e-9);
  EXPECT_NEAR(std::min(times[1], times[3]), kPacket / 1e6, 1e-9);
  EXPECT_NEAR(std::max(times[1], times[3]), 2 * kPacket / 1e6, 1e-9);
}

TEST(Network, ASocketTakesNoMoreThanItHolds) {
  Events events;
  Network network(events, {node_of(1, 1e6), node_of(1), node_of(1)});
  std::vector<double> taken;
  const auto now = [&] { taken.push_back(events.now()); };
  constexpr Network::Connection kOne = 1;
  constexpr Network::Connection kOther = 2;
  network.send(
      0, 1, 5e6, [] {}, kOne);
  network.when_taken(kOther, now);
  network.when_taken(kOne, now);
  while (events.step()) {
  }
  ASSERT_EQ(taken.size(), 2);
  EXPECT_EQ(taken[0], 0);
  EXPECT_NEAR(taken[1], 2.5, 0.4) << "half of it has left, the kernel holds the rest";
}

TEST(Network, ADelayDoesNotNarrowALink) {
  Node far = node_of(1, 1e9);
  far.link.latency = 0.05;
  EXPECT_NEAR(arrivals({far, far}, {{0, 1, 1e8}})[0], 0.2, 0.01) << "0.1 s of bytes, and the delay once";
}

double time_of_work(const Node& node, double seconds, int tasks = 1, double begin = 0) {
  Events events;
  NodeCpu cpu(events, node);
  double last = 0;
  events.at(begin, [&] {
    for (int i = 0; i < tasks; ++i) {
      cpu.run(seconds, 1, [&] { last = events.now(); });
    }
  });
  while (events.step()) {
  }
  return last - begin;
}

TEST(NodeCpu, TasksShareTheCoresAmongThemselvesAndWithOthers) {
  EXPECT_NEAR(time_of_work(node_of(2), 1, 2), 1, 1e-9);
  EXPECT_NEAR(time_of_work(node_of(2), 1, 3), 1.5, 1e-9);
  Node shared = node_of(2);
  shared.others = 2;
  EXPECT_NEAR(time_of_work(shared, 1, 2), 2, 1e-9);
  shared.others = 1;
  EXPECT_NEAR(time_of_work(shared, 1, 1), 1, 1e-9);
}

TEST(NodeCpu, WorkEndsAlsoWhereTheClockIsCoarse) {
  // After a hundred days a double counts time by two nanoseconds.
  for (const double quota : {0.0, 0.02}) {
    Node node = node_of(0.4);
    node.quota_period = quota;
    Events events;
    NodeCpu cpu(events, node);
    int done = 0;
    events.at(1e7, [&] {
      for (int i = 1; i <= 20; ++i) cpu.run(1e-3 / 7 * i, 1, [&] { ++done; });
    });
    for (int i = 0; i < 1000 && events.step(); ++i) {
    }
    EXPECT_EQ(done, 20) << quota;
  }
}

TEST(NodeCpu, AQuotaPausesAndASlowCoreDoesNot) {
  Node quota = node_of(0.5);
  quota.quota_period = 0.02;
  EXPECT_NEAR(time_of_work(quota, 0.009), 0.009, 1e-9) << "within the time of a period: full speed";
  EXPECT_NEAR(time_of_work(quota, 0.095), 0.185, 1e-9) << "ten milliseconds in every twenty";
  EXPECT_NEAR(time_of_work(quota, 0.02, 1, 1.0), 0.02, 1e-9) << "a period's unused time is kept";
  Node slow = node_of(1);
  slow.speed = 0.5;
  EXPECT_NEAR(time_of_work(slow, 0.009), 0.018, 1e-9);
}

TEST(NodeCpu, EmulatedNodesShareTheCoresOfTheirMachine) {
  Events events;
  Machine machine(2);
  std::deque<NodeCpu> nodes;
  for (int i = 0; i < 3; ++i) nodes.emplace_back(events, node_of(1), &machine);
  std::vector<double> ends(3);
  for (size_t i = 0; i < 3; ++i) {
    nodes[i].run(i == 0 ? 0.2 : 1, 1, [&events, &ends, i] { ends[i] = events.now(); });
  }
  while (events.step()) {
  }
  EXPECT_NEAR(ends[0], 0.3, 1e-9) << "two thirds of a core each";
  EXPECT_NEAR(ends[1], 1.1, 1e-9) << "then a core each";
  EXPECT_NEAR(ends[2], 1.1, 1e-9);
}

TEST(NodeCpu, ASmallQuotaHasALongerPeriod) {
  EXPECT_DOUBLE_EQ(quota_period(0.4), 0.02);
  EXPECT_DOUBLE_EQ(quota_period(0.02), 0.05) << "a millisecond of CPU time is the least that a kernel keeps to";
  EXPECT_DOUBLE_EQ(quota_period(1e-9), 1);
}

Training cluster(size_t workers, Strategy strategy, double rate = kUnlimited) {
  Training training;
  training.strategy = strategy;
  training.tensors = even_tensors(250'000);  // 1 MB
  training.batch = 64;
  training.costs = {.message = 0, .byte = 0, .wake = 0, .add = 0, .update = 0, .update_byte = 0};
  for (size_t i = 0; i < workers; ++i) {
    training.nodes.push_back(node_of(1, rate));
    training.workers.push_back({i, {.forward = 0.004, .backward = 0.006, .optimizer = 0.001, .rest = 0.0005}});
  }
  if (strategy == Strategy::servers) {
    training.servers.push_back({training.nodes.size()});
    training.nodes.push_back(node_of(1, rate));
  }
  return training;
}

TEST(Simulation, OneProcessTakesTheSumOfItsParts) {
  Training training = cluster(1, Strategy::local);
  training.evaluation = 0.002;
  const Prediction prediction = simulate(training);
  EXPECT_NEAR(prediction.step, 0.0135, 1e-9);
  EXPECT_NEAR(prediction.examples_per_second, 64 / 0.0135, 1e-3);
  EXPECT_NEAR(prediction.mean().all(), prediction.step, 1e-9);
}

TEST(Simulation, ALoaderSlowerThanTheStepSetsThePace) {
  Training training = cluster(1, Strategy::local);
  training.workers[0].work.load = 0.03;
  const Prediction prediction = simulate(training);
  EXPECT_NEAR(prediction.step, 0.03, 1e-6);
  EXPECT_NEAR(prediction.workers[0].data, 0.03 - 0.0115, 1e-6);
}

TEST(Simulation, PushAndAnswerOfAllWorkersGoThroughTheServersLink) {
  Training training = cluster(4, Strategy::servers, 1e8);
  training.push_bucket = size_t{8} << 20;  // one push at the end
  const Prediction prediction = simulate(training);
  // Four megabytes in and four out, at 100 MB/s. Whoever has its answer early computes and sends meanwhile.
  EXPECT_GT(prediction.step, 0.0105 + 0.04 + 0.01);
  EXPECT_LT(prediction.step, 0.0105 + 0.04 + 0.045);
  EXPECT_NEAR(prediction.sent, 1e6, 1);
  EXPECT_NEAR(prediction.nodes[4].link, 0.04 / prediction.step, 0.05);
}

TEST(Simulation, BucketsHideThePushBehindTheBackwardPass) {
  Training training = cluster(1, Strategy::servers, 1e9);
  training.tensors = even_tensors(2'500'000, 16);  // 10 MB: 10 ms
  training.push_bucket = size_t{64} << 20;
  const double at_the_end = simulate(training).step;
  training.push_bucket = size_t{1} << 16;
  const double early = simulate(training).step;
  EXPECT_NEAR(at_the_end, 0.0105 + 0.01 + 0.01, 0.001);
  EXPECT_NEAR(at_the_end - early, 0.006 * 15 / 16, 0.001);
}

TEST(Simulation, AQuotaCountsAlsoWhereStepsAreMuchShorterThanItsPeriod) {
  Training training = cluster(1, Strategy::local);
  training.workers[0].work = {.forward = 40e-6, .backward = 60e-6};
  training.nodes[0].cores = 0.4;
  training.nodes[0].quota_period = 0.02;
  // Forty steps fit into the time of one period.
  EXPECT_NEAR(simulate(training, {.steps = 40}).step, 100e-6 / 0.4, 10e-6);
}

TEST(Simulation, TheWorkerThatCameLastIsAnsweredFirst) {
  // Its thread in the server is awake, that of the other one has to wake up: so it is ahead at the next update.
  Training training = cluster(2, Strategy::servers);
  training.costs.wake = 1e-3;
  for (Worker& worker : training.workers) worker.work = {.forward = 1e-4, .backward = 1e-4};
  const Prediction prediction = simulate(training);
  EXPECT_GT(std::max(prediction.workers[0].others, prediction.workers[1].others), 0.5e-3);
}

TEST(Simulation, SeveralServersTellEachOtherWhatTheyHave) {
  Training training = cluster(1, Strategy::servers);
  training.tensors = even_tensors(1000);
  training.servers.push_back({training.nodes.size()});
  training.nodes.push_back(node_of(1));
  const double free = simulate(training).step;
  training.costs.message = 1e-3;
  // The worker sends two messages and gets two answers. In between the second server receives the push and says so, the
  // first hears of it, decides, tells the second, which answers. What servers tell each other also goes from thread to
  // thread.
  EXPECT_NEAR(simulate(training).step - free, 2e-3 + 7e-3 + 2e-3, 0.6e-3);
}

TEST(Simulation, APushThatOneServerHoldsUpKeepsTheOthersWaiting) {
  Training training = cluster(2, Strategy::servers, 1e9);
  training.tensors = even_tensors(20'000'000, 16);  // 80 MB
  training.servers.push_back({training.nodes.size()});
  training.nodes.push_back(node_of(1, 1e9));
  // The parts of the second server are final first. While it receives them from both workers, which takes 80 ms, the
  // first one gets little. Were all of its links full, a step would take 80 ms for the pushes and 80 ms for the
  // answers.
  const double step = simulate(training).step;
  EXPECT_GT(step, 0.21);
  EXPECT_LT(step, 0.27);
}

TEST(Simulation, EachWorkerOfANodeWaitsForItsOwnSocket) {
  for (const bool sync : {true, false}) {
    Training apart = cluster(2, Strategy::servers, 1e9);
    apart.tensors = even_tensors(2'500'000, 16);  // 10 MB, four times what a socket holds
    apart.sync = sync;
    Training together = apart;
    together.workers[1].node = 0;
    together.nodes[0].cores = 2;
    // Both bring their gradients over the server's link, which is as wide as that of the one node.
    const Prediction wanted = simulate(apart);
    const Prediction got = simulate(together);
    EXPECT_NEAR(got.step, wanted.step, 0.05 * wanted.step) << sync;
    EXPECT_NEAR(got.mean().push, wanted.mean().push, 0.1 * wanted.mean().push) << sync;
    // Beside the server a worker needs no link.
    Training shared = together;
    shared.servers[0].node = 1;
    shared.workers[1].node = 1;
    EXPECT_LT(simulate(shared).step, got.step) << sync;
  }
}

TEST(Simulation, PiecesOfALongSumCostLessThanMessages) {
  Training training = cluster(3, Strategy::all_reduce);
  training.costs = {.message = 1e-4, .byte = 0, .wake = 0, .add = 0, .update = 0, .update_byte = 0};
  training.tensors = even_tensors(20'000, 1);
  const double once = simulate(training).workers[0].messages;
  training.tensors = even_tensors(5'000'000, 1);  // in 82 rounds
  const double often = simulate(training).workers[0].messages;
  EXPECT_NEAR(once, 8 * 0.25e-4, 1e-6);
  EXPECT_NEAR(often, once + 81 * 8 * 0.05e-4, 0.1 * often);
}

TEST(Simulation, TwoServersHalveTheWay) {
  Training training = cluster(2, Strategy::servers, 1e8);
  const double one = simulate(training).mean().exchange();
  training.servers.push_back({training.nodes.size()});
  training.nodes.push_back(node_of(1, 1e8));
  const double two = simulate(training).mean().exchange();
  EXPECT_NEAR(two / one, 0.5, 0.1);
}

TEST(Simulation, AllReduceMovesTwiceTheBytesLessAShare) {
  Training training = cluster(4, Strategy::all_reduce, 1e8);
  const Prediction prediction = simulate(training);
  EXPECT_NEAR(prediction.sent, 1.5e6, 100);
  EXPECT_NEAR(prediction.mean().transfer, 0.015, 0.001);
  EXPECT_NEAR(prediction.step, 0.0115 + 0.015, 0.001);
}

TEST(Simulation, SyncWaitsForTheSlowestAndBackupsDoNot) {
  Training training = cluster(4, Strategy::servers);
  training.workers[3].work.forward += 0.01;
  const Prediction all = simulate(training);
  EXPECT_NEAR(all.step, 0.0205, 0.0002);
  EXPECT_NEAR(all.workers[0].others, 0.01, 0.0003);
  EXPECT_NEAR(all.workers[3].others, 0, 0.0003);
  training.aggregate = 3;
  const Prediction backup = simulate(training);
  EXPECT_NEAR(backup.step, 0.0105, 0.0003);
  EXPECT_GT(backup.dropped, 0.1);
}

TEST(Simulation, AsyncWorkersGoTheirOwnPaceUpToTheStaleness) {
  Training training = cluster(2, Strategy::servers);
  training.sync = false;
  training.workers[1].work.forward += 0.0105;
  const Prediction free = simulate(training);
  EXPECT_NEAR(free.updates_per_second, 1 / 0.0105 + 1 / 0.021, 3);
  EXPECT_GT(free.staleness, 0.5);
  training.max_staleness = 1;
  const Prediction bound = simulate(training);
  EXPECT_NEAR(bound.updates_per_second, 2 / 0.021, 3);
  EXPECT_GT(bound.workers[0].others, 0.005);
}

TEST(Simulation, AsyncWorkersAreNotInStepByChance) {
  Training training = cluster(2, Strategy::servers, 1e8);
  training.sync = false;
  // 10.5 ms of computing and 10 ms each way. In step, both would send and receive at once, which takes 50 ms.
  EXPECT_LT(simulate(training).step, 0.04);
}

TEST(Simulation, TheSameTrainingGivesTheSamePrediction) {
  Training training = cluster(3, Strategy::servers, 1e8);
  for (Worker& worker : training.workers) worker.work.spread = 0.2;
  const Prediction once = simulate(training);
  EXPECT_EQ(once.step, simulate(training).step);
  EXPECT_GT(once.mean().others, 0.0005) << "workers take turns at being last";
  training.seed = 2;
  EXPECT_NE(once.step, simulate(training).step);
}

TEST(Simulation, AThousandWorkersCostLittleMorePerWorkerThanAHundred) {
  for (const Strategy strategy : {Strategy::servers, Strategy::all_reduce}) {
    const auto events_of = [&](size_t workers) {
      Training training = cluster(workers, strategy, 1e9);
      for (Worker& worker : training.workers) worker.work.spread = 0.1;
      return static_cast<double>(simulate(training, {.steps = 8}).events);
    };
    EXPECT_LT(events_of(1000) / events_of(100), 12);
  }
}

TEST(Simulation, ImpossibleTrainingsAreRefused) {
  const auto message = [](const auto& change) {
    Training training = cluster(2, Strategy::servers);
    change(training);
    try {
      simulate(training);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message([](Training& t) { t.nodes[0].link.rate = 0; }), ::testing::HasSubstr("rate of node is 0"));
  EXPECT_THAT(message([](Training& t) { t.nodes[0].cores = 0; }), ::testing::HasSubstr("cores of node is 0"));
  EXPECT_THAT(message([](Training& t) { t.servers.clear(); }), ::testing::HasSubstr("without a server"));
  EXPECT_THAT(message([](Training& t) { t.workers.clear(); }), ::testing::HasSubstr("without workers"));
  EXPECT_THAT(message([](Training& t) { t.servers[0].node = 9; }), ::testing::HasSubstr("node 9"));
}

}  // namespace
}  // namespace lockstep::predict
