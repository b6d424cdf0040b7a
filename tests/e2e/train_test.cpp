// `lockstep train` to its end: files, settings, display.
#include <algorithm>
#include <string>
#include <thread>

#include "e2e/support.h"

namespace lockstep::testing {
namespace {

class Train : public ProgramTest {
 protected:
  void put_config(const std::string& text) const {
    put_file(folder / "run.yaml", {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
};

TEST_F(Train, LeavesAWholeRunBehind) {
  const Ended ended = succeed(quick_train("lr", {"--log-every", "5"}));
  EXPECT_THAT(ended.out, AllOf(HasSubstr("7,850 parameters"), HasSubstr("test accuracy"), HasSubstr("runs/lr-1"),
                               HasSubstr("lockstep eval runs/lr-1")));
  for (const char* file :
       {"config.yaml", "steps.csv", "evals.csv", "summary.json", "checkpoints/step-000000040.ckpt"}) {
    EXPECT_TRUE(std::filesystem::is_regular_file(folder / ("runs/lr-1/" + std::string(file)))) << file;
  }
  const std::string steps = get_file(folder / "runs/lr-1/steps.csv");
  EXPECT_EQ(std::count(steps.begin(), steps.end(), '\n'), 1 + 1 + 40 / 5);
  const std::string evals = get_file(folder / "runs/lr-1/evals.csv");
  EXPECT_EQ(std::count(evals.begin(), evals.end(), '\n'), 1 + 2);
}

TEST_F(Train, SummarySaysWhatHappened) {
  (void)succeed(quick_train("lenet", {"--seed", "5"}));
  const nlohmann::json json = summary("lenet-1");
  for (const char* key :
       {"model", "dataset", "parameters", "steps", "epochs", "examples", "seconds", "examples_per_second", "train_loss",
        "test_loss", "test_accuracy", "stop_reason", "peak_memory_bytes", "seed"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_EQ(json["model"], "lenet");
  EXPECT_EQ(json["dataset"], "synthetic");
  EXPECT_EQ(json["parameters"], 61706);
  EXPECT_EQ(json["steps"], 40);
  EXPECT_EQ(json["epochs"], 2);
  EXPECT_EQ(json["examples"], 2000);
  EXPECT_EQ(json["seed"], 5);
  EXPECT_EQ(json["stop_reason"], "epochs");
  EXPECT_LT(json["peak_memory_bytes"], 200'000'000);
}

TEST_F(Train, NeverOverwritesARun) {
  (void)succeed(quick_train("lr"));
  EXPECT_THAT(succeed(quick_train("lr")).out, HasSubstr("runs/lr-2"));
  EXPECT_THAT(fail(quick_train("lr", {"--run-dir", "runs/lr-1"}), 2), HasSubstr("--resume"));
}

TEST_F(Train, SameSeedGivesTheSameNumbers) {
  (void)succeed(quick_train("lenet"));
  (void)succeed(quick_train("lenet"));
  (void)succeed(quick_train("lenet", {"--seed", "2"}));
  EXPECT_EQ(summary("lenet-1")["test_loss"], summary("lenet-2")["test_loss"]);
  EXPECT_NE(summary("lenet-1")["test_loss"], summary("lenet-3")["test_loss"]);
}

TEST_F(Train, ConfigFileGivesSettingsAndFlagsWin) {
  put_config("model: lr\ndataset: synthetic\nbatch: 25\nepochs: 3\ntrain_limit: 500\nseed: 9\nthreads: 1\n");
  (void)succeed({"train", "--config", "run.yaml", "--epochs", "1"});
  const nlohmann::json json = summary("lr-1");
  EXPECT_EQ(json["batch"], 25);
  EXPECT_EQ(json["seed"], 9);
  EXPECT_EQ(json["epochs"], 1);
  EXPECT_EQ(json["steps"], 20);
}

TEST_F(Train, TheResolvedConfigRunsAgain) {
  (void)succeed(quick_train("lr"));
  (void)succeed({"train", "--config", "runs/lr-1/config.yaml"});
  EXPECT_EQ(summary("lr-1")["test_loss"], summary("lr-2")["test_loss"]);
}

TEST_F(Train, ConfigFileWithMistakesNamesLineAndNearestKey) {
  put_config("model: lr\nepocs: 3\n");
  EXPECT_THAT(fail({"train", "--config", "run.yaml"}, 2),
              AllOf(HasSubstr("run.yaml:2"), HasSubstr("'epocs'"), HasSubstr("did you mean 'epochs'?")));
  put_config("model: lr\nbatch: many\n");
  EXPECT_THAT(fail({"train", "--config", "run.yaml"}, 2), AllOf(HasSubstr("run.yaml:2"), HasSubstr("batch")));
  EXPECT_THAT(fail({"train", "--config", "absent.yaml"}, 1), HasSubstr("absent.yaml"));
}

TEST_F(Train, QuietPrintsOnlyTheResult) {
  const Ended ended = succeed(quick_train("lr", {"--quiet"}));
  EXPECT_EQ(std::count(ended.out.begin(), ended.out.end(), '\n'), 1) << ended.out;
  EXPECT_THAT(ended.out, AllOf(StartsWith("lr on synthetic: test accuracy"), HasSubstr("runs/lr-1")));
}

TEST_F(Train, WithoutATerminalLinesArePlain) {
  const Ended ended = succeed(quick_train("lr"));
  EXPECT_THAT(ended.out, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\r")), HasSubstr("train loss")));
}

TEST_F(Train, OnATerminalThereIsABar) {
  ProcessOptions terminal = options();
  terminal.terminal = true;
  const Words words = quick_train("lenet", {"--epochs", "100000", "--seconds", "2"});
  const Ended ended = lockstep(words, terminal);
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("\r"), HasSubstr("examples/s"), HasSubstr(" left"), HasSubstr("━")));
  EXPECT_THAT(ended.out, HasSubstr("\x1b[1m"));
}

TEST_F(Train, NoColorIsRespected) {
  ProcessOptions terminal = options();
  terminal.terminal = true;
  terminal.environment.emplace_back("NO_COLOR", "1");
  EXPECT_THAT(lockstep(quick_train("lr"), terminal).out, Not(HasSubstr("\x1b[1m")));
}

TEST_F(Train, StopsAtTheAccuracyAsked) {
  (void)succeed(quick_train("lr", {"--stop-accuracy", "0.5", "--eval-every", "5", "--epochs", "50"}));
  EXPECT_EQ(summary("lr-1")["stop_reason"], "accuracy");
  EXPECT_LT(summary("lr-1")["epochs"], 50);
}

TEST_F(Train, ANonFiniteLossStopsAndNamesTheStep) {
  const std::string error = fail(quick_train("lenet", {"--optimizer", "sgd", "--lr", "100000"}), 1);
  EXPECT_THAT(error, HasSubstr("step"));
  EXPECT_EQ(summary("lenet-1")["stop_reason"], "non-finite loss");
}

TEST_F(Train, ThreadsThatDoNotFitTheCoresBlock) {
  const std::string too_many = std::to_string(2 * std::thread::hardware_concurrency());
  (void)succeed(quick_train("lr", {"--threads", too_many, "--epochs", "1"}));
  (void)succeed(quick_train("lr", {"--threads", "1"}));
  (void)succeed(quick_train("lr", {"--wait-policy", "block"}));
  (void)succeed(quick_train("lr", {"--wait-policy", "spin"}));
  EXPECT_EQ(summary("lr-1")["wait_policy"], "block");
  EXPECT_EQ(summary("lr-2")["wait_policy"], "brief");
  EXPECT_EQ(summary("lr-3")["wait_policy"], "block");
  EXPECT_EQ(summary("lr-4")["wait_policy"], "spin");
}

}  // namespace
}  // namespace lockstep::testing
