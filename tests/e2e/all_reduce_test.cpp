// Training by all-reduce in real processes, over every engine: results, counting, stopping, and resuming from a
// checkpoint.
#include "e2e/all_reduce.h"

#include <csignal>

#include "checkpoint/checkpoint_store.h"

namespace lockstep::testing {
namespace {

class AllReduce : public AllReduceTest {
 protected:
  static uint64_t sum(const Result& result, const std::string& key) {
    uint64_t sum = 0;
    for (const auto& worker : result.summary["workers"]) sum += worker[key].get<uint64_t>();
    return sum;
  }
  void put_dropout_model() const {
    std::ofstream(folder / "dropping.yaml") << "name: dropping\n"
                                               "image: [1, 28, 28]\n"
                                               "layers:\n"
                                               "  - flatten\n"
                                               "  - dense: 16\n"
                                               "  - relu\n"
                                               "  - dropout: 0.4\n"
                                               "  - dense: $classes\n";
  }
  [[nodiscard]] uint64_t lines(const std::string& file) const {
    const std::string text = get_file(folder / file);
    return static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n'));
  }
};

TEST_F(AllReduce, IsOneProcessThatAccumulatesWithinRoundingOverEveryEngine) {
  put_dropout_model();
  // The last round of each pass is short, and one of three workers has no part in it.
  const Words words = Words{"dropping.yaml", "--epochs", "4",    "--batch",     "30", "--optimizer",
                            "momentum",      "--lr",     "0.02", "--clip-norm", "1"} +
                      data(542);
  for (const int members : {2, 3}) {
    const Result alone =
        train("alone" + std::to_string(members), words + Words{"--accumulate", std::to_string(members)});
    EXPECT_GE(alone.steps, 20U);
    for (const std::string& engine : engines()) {
      SCOPED_TRACE(engine);
      const Result together = train_over(engine, members, engine + std::to_string(members), words);
      EXPECT_EQ(together.steps, alone.steps);
      EXPECT_EQ(together.examples, alone.examples);
      EXPECT_LT(distance(alone, together), 2e-6);
      EXPECT_EQ(together.summary["communication"]["engine"], engine);
    }
  }
}

TEST_F(AllReduce, GivesTheSameBitsTwiceOverEveryEngine) {
  const Words words = Words{"lenet", "--epochs", "2", "--batch", "20", "--bucket-mb", "0.05"} + data(300);
  for (const std::string& engine : engines()) {
    for (const int members : {2, 3}) {
      const std::string name = engine + std::to_string(members);
      SCOPED_TRACE(name);
      expect_same_bits(train_over(engine, members, name + "-first", words),
                       train_over(engine, members, name + "-second", words));
    }
  }
}

// Counting and stop rules.

TEST_F(AllReduce, CountsStepsExamplesAndEpochsOfAllTogether) {
  const Words words = Words{"lr", "--batch", "50", "--epochs", "2", "--eval-every", "3"} + data();
  for (const std::string& engine : engines()) {
    SCOPED_TRACE(engine);
    const Result result = train_over(engine, 3, engine, words);
    EXPECT_EQ(result.steps, 8U);
    EXPECT_EQ(result.examples, 1200U);
    EXPECT_EQ(result.summary["epochs"], 2);
    EXPECT_EQ(result.summary["stop_reason"], "epochs");
    EXPECT_EQ(result.summary["strategy"], "allreduce");
    EXPECT_EQ(result.summary["workers"].size(), 3U);
    EXPECT_EQ(sum(result, "examples"), 1200U);
    EXPECT_EQ(sum(result, "iterations"), 24U);
    EXPECT_FALSE(result.summary.contains("stragglers"));
    EXPECT_EQ(lines(engine + "/steps.csv"), 1U + 8U);
    EXPECT_EQ(lines(engine + "/evals.csv"), 1U + 4U);  // after 3, 4, 6 and 8 steps
    EXPECT_EQ(result.summary["test_step"], 8);
  }
}

TEST_F(AllReduce, EveryRuleEndsAllAtTheSameStep) {
  const std::vector<std::pair<Words, std::string>> rules{{{"--steps", "25"}, "steps"},
                                                         {{"--seconds", "0.3"}, "seconds"},
                                                         {{"--stop-accuracy", "0.6"}, "accuracy"},
                                                         {{"--stop-loss", "1.9"}, "loss"},
                                                         {{"--repeat", "3"}, "data ran out"}};
  for (const std::string& engine : engines()) {
    for (const auto& [rule, reason] : rules) {
      SCOPED_TRACE(engine + rule[0]);
      const std::string name = engine + rule[0];
      const Words words = Words{"lr", "--batch", "20", "--epochs", "0"} + data() + rule;
      const Result result = train_over(engine, 2, name, words);
      EXPECT_EQ(result.summary["stop_reason"], reason);
      if (reason == "steps") {
        EXPECT_EQ(result.steps, 25U);
      }
      if (reason == "data ran out") {
        EXPECT_EQ(result.examples, 1800U);
      }
      EXPECT_EQ(lines(name + "/steps.csv"), 1 + result.steps);
      EXPECT_EQ(checkpoint::read_checkpoint(newest_checkpoint(name)).header.state.step, result.steps);
      if (engine == "inprocess") continue;
      EXPECT_EQ(lines(name + "/worker-1/steps.csv"), 1 + result.steps);
    }
  }
}

TEST_F(AllReduce, CtrlCEndsAllAtTheSameStepAndResumingGivesTheBitsOfARunNeverStopped) {
  const Words words = Words{"lenet", "--batch", "10", "--epochs", "0", "--eval-every", "20"} + data();
  const Words two{"--workers", "2", "--strategy", "allreduce"};
  const Words replicas{"--replicas", "2"};
  for (const Words& how : {two, replicas}) {
    SCOPED_TRACE(how[0]);
    const std::string name = "stopped" + how[0];
    const Words endless = words + how + Words{"--steps", "1000000000", "--run-dir", name};
    Process process(program_path(), Words{"train"} + endless, options());
    while (lines(name + "/evals.csv") < 3) usleep(20'000);
    process.signal(SIGINT);
    EXPECT_EQ(process.finish().code, 130);
    const Result stopped = result(name);
    EXPECT_EQ(stopped.summary["stop_reason"], "interrupted");
    EXPECT_EQ(checkpoint::read_checkpoint(newest_checkpoint(name)).header.state.step, stopped.steps);
    EXPECT_EQ(lines(name + "/steps.csv"), 1 + stopped.steps);
    const Words more{"--steps", std::to_string(stopped.steps + 70)};
    const Result resumed = resume(name, more);
    const Result whole = train("whole" + how[0], words + how + more);
    expect_same_bits(whole, resumed);
  }
}

TEST_F(AllReduce, ALossThatIsNoNumberOnOneWorkerEndsAllAndIsNamed) {
  // One class of rows holds NaN: some worker meets the first one; with 600 examples every worker would.
  std::ofstream csv(folder / "bad.csv");
  csv << "label,a,b\n";
  for (int i = 0; i < 40; ++i) csv << i % 2 << "," << i << "," << (i == 7 ? "3e38" : "1") << "\n";
  csv.close();
  std::ofstream(folder / "square.yaml")
      << "name: square\nimage: [1, 1, 2]\nlayers:\n  - flatten\n  - dense: $classes\n";
  for (const std::string& engine : engines()) {
    SCOPED_TRACE(engine);
    const Words words{"train",     "square.yaml", "--dataset", "bad.csv", "--batch", "4",         "--epochs", "3",
                      "--threads", "1",           "--quiet",   "--lr",    "1e5",     "--run-dir", engine};
    const Ended ended = run_over(engine, 2, words);
    EXPECT_EQ(ended.code, 1) << ended.out << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("the loss became "));
    EXPECT_THAT(ended.err, HasSubstr(" at step "));
    if (engine != "inprocess") {
      EXPECT_THAT(ended.err, HasSubstr(" on worker:"));
    }
  }
}

// Resuming.

TEST_F(AllReduce, ACheckpointGoesFromOneProcessToWorkersAndBack) {
  const Words words = Words{"lenet", "--batch", "20", "--optimizer", "adam"} + data(300);
  const Words three{"--workers", "3", "--strategy", "allreduce"};
  // One worker matches one process, to the bit.
  const Result whole = train("whole", words + Words{"--epochs", "3"});
  (void)train("parts", words + Words{"--epochs", "1"});
  (void)resume("parts", {"--epochs", "2", "--workers", "1", "--strategy", "allreduce"});
  expect_same_bits(whole, resume("parts", {"--epochs", "3", "--workers", "0"}));
  // Several workers resume with their whole state.
  (void)train("onto", words + Words{"--epochs", "1"});
  const Result onto = resume("onto", Words{"--epochs", "2"} + three);
  EXPECT_EQ(onto.steps, 15U + 5U);
  EXPECT_EQ(onto.examples, 600U);
  const Result back = resume("onto", {"--epochs", "3", "--workers", "0"});
  EXPECT_EQ(back.steps, 15U + 5U + 15U);
  EXPECT_EQ(back.examples, 900U);
  EXPECT_EQ(lines("onto/steps.csv"), 1 + back.steps);
}

TEST_F(AllReduce, ACheckpointGoesFromParameterServersAndBack) {
  const Words words = Words{"lenet", "--batch", "20", "--optimizer", "adam", "--workers", "2"} + data(300);
  const Result all_reduce = train_together(
      "all", Words{"lenet", "--batch", "20", "--optimizer", "adam"} + data(300) + Words{"--epochs", "3"}, 2);
  (void)train("parts", words + Words{"--ps", "1", "--epochs", "1"});
  (void)resume("parts", {"--epochs", "2", "--strategy", "allreduce"});
  const Result back = resume("parts", {"--epochs", "3", "--strategy", "ps"});
  EXPECT_EQ(back.summary["strategy"], "ps");
  EXPECT_EQ(back.steps, all_reduce.steps);
  EXPECT_EQ(back.examples, all_reduce.examples);
  EXPECT_LT(distance(back, all_reduce), 1e-4);
}

TEST_F(AllReduce, GoesOnWithMoreWorkersFromTheMiddleOfAnEpoch) {
  const Words words = Words{"lr", "--batch", "20", "--epochs", "0"} + data(600);
  (void)train_together("run", words + Words{"--steps", "5"}, 2);  // 200 examples
  const Result more = resume("run", {"--workers", "3", "--steps", "0", "--epochs", "1"});
  EXPECT_EQ(more.examples, 600U);
  EXPECT_EQ(more.steps, 5U + 7U);  // 400 examples in rounds of 60
  EXPECT_EQ(more.summary["workers"].size(), 3U);
  const Result fewer = resume("run", {"--workers", "2", "--epochs", "2"});
  EXPECT_EQ(fewer.examples, 1200U);
  EXPECT_EQ(fewer.steps, 12U + 15U);
  (void)train_together("global", words + Words{"--global-batch", "60", "--steps", "5"}, 2);
  EXPECT_EQ(resume("global", {"--workers", "3", "--steps", "0", "--epochs", "1"}).steps, 10U);
}

// Bytes sent.

TEST_F(AllReduce, FewerBytesTrainAsWell) {
  const std::string mnist = real_mnist();
  if (mnist.empty() && !has_fashion_mnist()) GTEST_SKIP() << "needs MNIST or Fashion-MNIST";
  Words words{"lenet", "--epochs",     "1",    "--train-limit", "8000", "--batch",
              "10",    "--test-limit", "1000", "--threads",     "1",    "--quiet"};
  words = words + (mnist.empty() ? Words{"--dataset", "fashion-mnist"} : Words{"--data", mnist + "/mnist"});
  const Result whole = train_over("inprocess", 2, "whole", words);
  const double bytes = whole.summary["communication"]["bytes_per_step"];
  const double accuracy = whole.summary["test_accuracy"];
  const std::vector<std::pair<Words, double>> smaller{{{"--wire", "bf16"}, 0.501},
                                                      {{"--wire", "f16"}, 0.501},
                                                      {{"--top-k", "0.1"}, 0.201},
                                                      {{"--top-k", "0.01"}, 0.021}};
  for (const auto& [how, share] : smaller) {
    SCOPED_TRACE(how[0] + how[1]);
    const Result result = train_over("inprocess", 2, "run" + how[0] + how[1], words + how);
    const double sent = result.summary["communication"]["bytes_per_step"];
    EXPECT_LE(sent, bytes * share);
    EXPECT_GT(sent, 0);
    EXPECT_GT(result.summary["test_accuracy"], accuracy - 0.05);
    EXPECT_EQ(result.steps, whole.steps);
    if (how[0] == "--wire") {
      EXPECT_EQ(result.summary["wire"], how[1]);
    }
    if (how[0] == "--top-k") {
      EXPECT_EQ(result.summary["communication"]["top_k"], std::stod(how[1]));
    }
  }
}

TEST_F(AllReduce, AutotunesAndGoesOnWithItsChoice) {
  const Words words = Words{"lenet", "--batch", "10", "--epochs", "0", "--autotune", "--bucket-mb", "0.02"} + data();
  for (const std::string& engine : engines()) {
    if (engine == "mpi") continue;
    SCOPED_TRACE(engine);
    const Result first = train_over(engine, 2, engine, words + Words{"--steps", "40"});
    const std::string config = get_file(folder / (engine + "/config.yaml"));
    EXPECT_THAT(config, HasSubstr("autotune: false"));
    const uint64_t chosen = first.summary["communication"]["bucket_bytes"];
    const std::string line = config.substr(config.find("bucket_mb: "));
    EXPECT_EQ(static_cast<uint64_t>(std::stod(line.substr(11)) * 1024 * 1024), chosen);
    const Result second = resume(engine, {"--steps", "45"});
    EXPECT_EQ(second.summary["communication"]["bucket_bytes"], chosen);
    EXPECT_EQ(second.steps, 45U);
  }
}

}  // namespace
}  // namespace lockstep::testing
