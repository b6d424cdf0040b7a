// How a cluster counts, shares its data, stops and is watched: real processes on loopback.
#include "e2e/cluster.h"

namespace lockstep::testing {
namespace {

class ClusterRules : public ClusterTest {
 protected:
  [[nodiscard]] Words lr(const Words& more) const {
    return Words{"lr", "--batch", "50", "--workers", "3", "--ps", "1"} + data() + more;
  }
  [[nodiscard]] static uint64_t sum(const Result& result, const std::string& key) {
    uint64_t sum = 0;
    for (const auto& worker : result.summary["workers"]) sum += worker[key].get<uint64_t>();
    return sum;
  }
};

TEST_F(ClusterRules, EpochsHoldTheExamplesConstantAndSyncMakesFewerUpdates) {
  const Result sync = train("sync", lr({"--sync", "--epochs", "2"}));
  const Result async = train("async", lr({"--async", "--epochs", "2"}));
  EXPECT_EQ(sync.examples, 1200U);
  EXPECT_EQ(async.examples, 1200U);
  EXPECT_EQ(sync.steps, 8U);
  EXPECT_EQ(async.steps, 24U);
  for (const auto& worker : async.summary["workers"]) {
    EXPECT_EQ(worker["examples"], 400);
    EXPECT_EQ(worker["iterations"], 8);
    EXPECT_TRUE(worker.contains("finished_seconds"));
    EXPECT_TRUE(worker.contains("staleness"));
    EXPECT_TRUE(worker.contains("accuracy"));
    EXPECT_TRUE(worker.contains("wait_share"));
  }
}

TEST_F(ClusterRules, StepsCountUpdatesOverAllWorkers) {
  for (const char* mode : {"--sync", "--async", "--max-staleness=1", "--aggregate=2"}) {
    const Result result = train(std::string("steps") + mode, lr({mode, "--epochs", "0", "--steps", "25"}));
    EXPECT_EQ(result.steps, 25U) << mode;
    EXPECT_EQ(result.summary["stop_reason"], "steps") << mode;
    EXPECT_EQ(sum(result, "updates"), std::string(mode) == "--sync" ? 75U : sum(result, "updates")) << mode;
  }
}

TEST_F(ClusterRules, ARuleMetByOneEndsAll) {
  for (const char* mode : {"--sync", "--async"}) {
    for (const Words& rule :
         std::vector<Words>{{"--stop-accuracy", "0.6"}, {"--stop-loss", "1.9"}, {"--seconds", "0.3"}}) {
      const Result result = train("rule" + std::string(mode) + rule[0], lr({mode, "--epochs", "0"}) + rule);
      const std::string reason = result.summary["stop_reason"];
      EXPECT_EQ(reason, rule[0] == "--stop-accuracy" ? "accuracy" : rule[0] == "--stop-loss" ? "loss" : "seconds");
    }
  }
}

TEST_F(ClusterRules, ARuleMetByTheEvaluatorEndsAll) {
  const Result result = train("run", lr({"--sync", "--epochs", "1000000", "--stop-accuracy", "0.6", "--evaluator"}));
  EXPECT_EQ(result.summary["stop_reason"], "accuracy");
}

TEST_F(ClusterRules, ARuleEndsAllWithSeveralServers) {
  const Words two{"lr", "--batch", "50", "--workers", "2", "--ps", "2", "--epochs", "0", "--seconds", "0.3"};
  for (const char* mode : {"--sync", "--async"}) {
    EXPECT_EQ(train(mode + 2, two + data() + Words{mode}).summary["stop_reason"], "seconds") << mode;
  }
}

TEST_F(ClusterRules, EpochsOfAFixedLengthAndRepeatedDataAreDecoupled) {
  // Each worker has 4 batches in a pass; an epoch is 5 of them, and the data ends after 3 passes.
  const Result result = train("run", lr({"--sync", "--epochs", "100", "--steps-per-epoch", "5", "--repeat", "3"}));
  EXPECT_EQ(result.examples, 1800U);
  EXPECT_EQ(result.steps, 12U);
  EXPECT_EQ(result.summary["stop_reason"], "data ran out");
}

TEST_F(ClusterRules, WithoutShardingEveryWorkerSeesAllExamples) {
  const Result result = train("run", lr({"--async", "--epochs", "1", "--shard", "none"}));
  EXPECT_EQ(result.examples, 1800U);
  for (const auto& worker : result.summary["workers"]) EXPECT_EQ(worker["examples"], 600);
}

TEST_F(ClusterRules, BackupsSeeEachExampleOnceAndDropWhatIsLate) {
  const Result result = train("run", lr({"--aggregate", "2", "--epochs", "4"}));
  EXPECT_EQ(result.examples, 2400U);
  EXPECT_EQ(sum(result, "examples"), 2400U);
}

TEST_F(ClusterRules, BoundedStalenessBoundsTheStaleness) {
  const Result result = train("run", lr({"--max-staleness", "0", "--epochs", "10"}));
  EXPECT_EQ(result.examples, 6000U);
  // With a barrier after each batch, each other worker makes at most one update in between, twice.
  for (const auto& worker : result.summary["workers"]) EXPECT_LE(worker["staleness_max"], 4);
}

TEST_F(ClusterRules, TheEvaluatorEvaluatesEveryCheckpoint) {
  const Result result = train("run", lr({"--sync", "--epochs", "3", "--evaluator"}));
  const std::string evals = get_file(folder / "run/evaluator-0/evals.csv");
  EXPECT_EQ(std::count(evals.begin(), evals.end(), '\n'), 1 + 3) << evals;
  EXPECT_THAT(evals, AllOf(HasSubstr("\n4,"), HasSubstr("\n8,"), HasSubstr("\n12,")));
  // The result comes from the last update.
  EXPECT_EQ(result.summary["test_step"], 12);
}

TEST_F(ClusterRules, LayoutsAreTheSameTraining) {
  const Words words = Words{"lr", "--batch", "50", "--sync", "--epochs", "1"} + data();
  const Result one = train("one", words + Words{"--layout", "PS-W-W"});
  const Result two = train("two", words + Words{"--layout", "PW-W"});
  const Result both = train("both", words + Words{"--layout", "PW-PW"});
  expect_same_bits(one, two);
  expect_same_bits(one, both);
}

TEST_F(ClusterRules, TwoClustersAtOnceDoNotDisturbEachOther) {
  const Words words = Words{"train"} + lr({"--sync", "--epochs", "5"});
  const Result alone = train("alone", lr({"--sync", "--epochs", "5"}));
  Process first(program_path(), words + Words{"--run-dir", "first"}, options());
  Process second(program_path(), words + Words{"--run-dir", "second"}, options());
  EXPECT_EQ(first.finish().code, 0);
  EXPECT_EQ(second.finish().code, 0);
  expect_same_bits(alone, result("first"));
  expect_same_bits(alone, result("second"));
}

TEST_F(ClusterRules, HalfTheBytesTrainAsWell) {
  const Words words = Words{"lenet", "--batch", "20", "--workers", "2", "--ps", "1", "--epochs", "3"} + data();
  const Result full = train("full", words);
  const double accuracy = full.summary["test_accuracy"];
  EXPECT_GT(accuracy, 0.9);
  for (const char* wire : {"bf16", "f16"}) {
    const Result half = train(wire, words + Words{"--wire", wire});
    EXPECT_EQ(half.steps, full.steps);
    EXPECT_GT(half.summary["test_accuracy"], accuracy - 0.05) << wire;
  }
}

TEST_F(ClusterRules, ThreeAsyncWorkersReachTheAccuracyOfOneProcess) {
  const std::string mnist = real_mnist();
  if (mnist.empty() && !has_fashion_mnist()) GTEST_SKIP() << "needs MNIST or Fashion-MNIST";
  Words words{"lr", "--epochs", "5", "--threads", "1", "--quiet", "--log-every", "0"};
  words =
      words + (mnist.empty() ? Words{"--dataset", "fashion-mnist", "--lr", "0.1"} : Words{"--data", mnist + "/mnist"});
  const double alone = train("alone", words).summary["test_accuracy"];
  const double together =
      train("together", words + Words{"--workers", "3", "--ps", "1", "--async"}).summary["test_accuracy"];
  EXPECT_NEAR(together, alone, mnist.empty() ? 0.03 : 0.01);  // for any order of their updates
}

TEST_F(ClusterRules, WhatCannotBeIsRefusedWithOneLine) {
  const Words base{"train", "lr", "--dataset", "synthetic", "--workers", "2", "--ps", "2"};
  EXPECT_THAT(fail(base + Words{"--async", "--aggregate", "1"}, 2), HasSubstr("aggregate"));
  EXPECT_THAT(fail(base + Words{"--sync", "--apply", "lock-free"}, 2), HasSubstr("lock-free applies only to async"));
  EXPECT_THAT(fail(base + Words{"--sync", "--clip-norm", "1"}, 2), HasSubstr("clip-norm"));
  EXPECT_THAT(fail(base + Words{"--global-batch", "101"}, 2), HasSubstr("cannot be shared evenly among 2"));
}

}  // namespace
}  // namespace lockstep::testing
