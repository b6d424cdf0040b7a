#include "role/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/parallel.h"
#include "checkpoint/checkpoint_store.h"
#include "data/images.h"
#include "data/random_images.h"
#include "role/group_member.h"
#include "run/run_log.h"
#include "support.h"
#include "train/data_options.h"

namespace lockstep::train {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::exploding_model;
using testing::Flags;
using testing::get_file;
using ::testing::HasSubstr;
using testing::message_of;
using ::testing::Not;
using testing::Recorder;
using ::testing::StartsWith;
using testing::TempDir;
using testing::train_session;
using ::testing::Truly;

/// A run of 5 steps per epoch on generated data.
Request request(const TempDir& dir, const Flags& more = {}) {
  Request request;
  request.settings = {{"model", "lr"},      {"dataset", "synthetic"}, {"train-limit", "300"},
                      {"test-limit", "50"}, {"batch", "64"},          {"epochs", "2"},
                      {"threads", "1"},     {"log-every", "1"},       {"runs-dir", dir / "runs"}};
  for (const auto& [name, text] : more) request.settings[name] = text;
  return request;
}

nlohmann::json summary_of(const std::string& run) { return nlohmann::json::parse(get_file(run + "/summary.json")); }

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> lines;
  std::istringstream in(get_file(path));
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Session, WritesEverythingAboutARun) {
  const TempDir dir;
  Recorder recorder;
  Request wanted = request(dir);
  wanted.hooks = {&recorder};
  const Outcome outcome = train(wanted);
  EXPECT_EQ(outcome.run_dir, dir / "runs/lr-1");
  EXPECT_EQ(outcome.reason, StopReason::epochs);
  EXPECT_EQ(outcome.steps, 10U);
  EXPECT_EQ(recorder.start.total_steps, 10U);
  EXPECT_EQ(recorder.start.parameters, 7850U);

  const auto summary = summary_of(outcome.run_dir);
  for (const char* key : {"model", "dataset", "parameters", "steps", "epochs", "examples", "seconds",
                          "examples_per_second", "train_loss", "test_loss", "test_accuracy", "stop_reason",
                          "peak_memory_bytes", "seed", "threads", "isa", "version", "started", "ended"}) {
    EXPECT_TRUE(summary.contains(key) && !summary[key].is_null()) << key;
  }
  EXPECT_EQ(summary["stop_reason"], "epochs");
  EXPECT_EQ(summary["examples"], 600);
  EXPECT_EQ(summary["parameters"], 7850);

  const auto steps = lines_of(outcome.run_dir + "/steps.csv");
  ASSERT_EQ(steps.size(), 11U);
  EXPECT_EQ(steps[0], "step,epoch,seconds,loss,accuracy,learning_rate,examples_per_second,seconds_per_step");
  EXPECT_THAT(steps[10], StartsWith("10,2,"));
  EXPECT_EQ(lines_of(outcome.run_dir + "/evals.csv").size(), 3U);
  EXPECT_EQ(checkpoint::CheckpointStore(outcome.run_dir + "/checkpoints").list().size(), 2U);

  settings::Configuration again;
  again.load_yaml(outcome.run_dir + "/config.yaml");
  EXPECT_EQ(again.resolve().batch, 64);
  EXPECT_EQ(again.resolve().threads, 1);
}

TEST(Session, AnAutoencoderLeavesAPictureAtEachEvaluationAndNoAccuracy) {
  const TempDir dir;
  const Outcome outcome = train(request(dir, {{"model", "autoencoder"}}));
  for (const char* step : {"00000005", "00000010"}) {
    const data::Examples picture =
        data::read_png(outcome.run_dir + "/pictures/reconstruction-" + std::string(step) + ".png");
    EXPECT_GT(picture.shape.width, 8 * 28);  // four pairs of images a row
    EXPECT_GT(picture.shape.height, 8 * 28);
  }
  EXPECT_TRUE(summary_of(outcome.run_dir)["test_accuracy"].is_null());
  EXPECT_THAT(lines_of(outcome.run_dir + "/evals.csv")[1], ::testing::ContainsRegex(",,50,"));
}

TEST(Session, ImagesThatCannotBeShownTrainWithoutPictures) {
  const TempDir dir;
  const data::Dataset flat = data::synthetic({.train = 100, .test = 20, .shape = {1, 1, 300}});
  Recorder recorder;
  const Outcome outcome = train_session(
      {{"model", "autoencoder"}, {"epochs", "1"}, {"batch", "20"}, {"runs-dir", dir / "runs"}}, recorder, {}, flat);
  EXPECT_EQ(outcome.reason, StopReason::epochs);
  EXPECT_FALSE(std::filesystem::exists(outcome.run_dir + "/pictures"));
}

TEST(Session, ABatchThatNoMachineHoldsIsRefusedWithItsMemory) {
  const TempDir dir;
  const data::Dataset many = data::random_images({.train = 2000000, .test = 1, .classes = 10, .shape = {3, 224, 224}});
  Recorder recorder;
  const auto refused = [&] {
    train_session({{"model", "alexnet"}, {"batch", "2000000"}, {"runs-dir", dir / "runs"}}, recorder, {}, many);
  };
  EXPECT_THAT(
      message_of<UsageError>(refused),
      ::testing::AllOf(HasSubstr("model 'alexnet' with a batch of 2000000 needs"), HasSubstr("this machine has")));
}

TEST(DataOptions, GeneratedImagesMayBeSmallerThanTheModelsOwnAndOthersMayNot) {
  settings::Settings settings;
  settings.dataset = "images";
  settings.image_size = 64;
  const data::LoadOptions options = data_options(settings, {3, 224, 224});
  EXPECT_EQ(options.expected.channels, 3);
  EXPECT_EQ(options.expected.height, 64);
  EXPECT_EQ(options.expected.width, 64);
  settings.dataset = "mnist";
  EXPECT_THAT(message_of<UsageError>([&] {
                (void)data_options(settings, {1, 28, 28});
              }),
              HasSubstr("image-size: 64 is for the generated data set images, not for 'mnist'"));
}

TEST(Session, CallsHooksInOrderAndEndsWithTheOutcome) {
  const TempDir dir;
  Recorder recorder;
  Request wanted = request(dir, {{"epochs", "1"}, {"batch", "150"}});
  wanted.hooks = {&recorder};
  train(wanted);
  EXPECT_THAT(recorder.order, ElementsAre("step", "step", "eval", "checkpoint"));
  ASSERT_EQ(recorder.ends.size(), 1U);
  EXPECT_EQ(recorder.ends[0].steps, 2U);
  EXPECT_TRUE(recorder.checkpoints[0].best);
}

TEST(Session, CheckpointsEveryNStepsAndKeepsTheLastAndTheBest) {
  const TempDir dir;
  Request wanted = request(dir, {{"checkpoint-every", "2"}, {"keep", "2"}, {"steps", "9"}});
  const Outcome outcome = train(wanted);
  std::vector<uint64_t> steps;
  for (const auto& file : checkpoint::CheckpointStore(outcome.run_dir + "/checkpoints").list())
    steps.push_back(file.step);
  EXPECT_THAT(steps, ElementsAre(8, 9)) << "the end is the best one here";
}

TEST(Session, NonFiniteLossIsAnErrorInTheSummaryAndLeavesTheLastGoodCheckpoint) {
  const TempDir dir;
  Request wanted = request(dir, {{"model", "exploding"}, {"lr", "1"}, {"batch", "20"}, {"checkpoint-every", "1"}});
  wanted.models = {exploding_model()};
  const std::string message = message_of<Error>([&] { train(wanted); });
  EXPECT_THAT(message, HasSubstr("at step "));
  const auto summary = summary_of(dir / "runs/exploding-1");
  EXPECT_EQ(summary["stop_reason"], "non-finite loss");
  EXPECT_EQ(summary["error"], message);
  std::string path;
  const checkpoint::Checkpoint last =
      checkpoint::CheckpointStore(dir / "runs/exploding-1/checkpoints").load_newest(path);
  EXPECT_GT(last.header.state.step, 0U);
  EXPECT_LE(last.header.state.step, summary["steps"]);
  EXPECT_THAT(last.values, Each(Truly([](float value) { return std::isfinite(value); })));
}

TEST(Session, NonFiniteParametersAreNeverSaved) {
  const TempDir dir;
  const Flags flags{{"lr", "1e6"}, {"weight-decay", "1e6"}, {"epochs", "0"}, {"steps", "4"}};
  EXPECT_THAT(message_of<Error>([&] { train(request(dir, flags)); }),
              AllOf(StartsWith("the evaluated loss became nan"), HasSubstr("at step 4 (epoch 1)")));
  EXPECT_TRUE(summary_of(dir / "runs/lr-1")["best_step"].is_null());
  EXPECT_EQ(summary_of(dir / "runs/lr-1")["stop_reason"], "non-finite loss");
  Flags saving = flags;
  saving["steps"] = "8";
  saving["checkpoint-every"] = "1";
  saving["keep"] = "1";
  EXPECT_THAT(message_of<Error>([&] { train(request(dir, saving)); }), HasSubstr("the parameters became"));
  std::string path;
  const checkpoint::Checkpoint last = checkpoint::CheckpointStore(dir / "runs/lr-2/checkpoints").load_newest(path);
  EXPECT_THAT(last.values, Each(Truly([](float value) { return std::isfinite(value); })));
}

TEST(Session, TheBestEvaluationHasACheckpointWhereverItFalls) {
  const TempDir dir;
  const Outcome outcome = train(request(dir, {{"checkpoint-every", "4"}, {"keep", "1"}, {"epochs", "3"}}));
  ASSERT_TRUE(outcome.best_eval);
  EXPECT_TRUE(checkpoint::CheckpointStore(outcome.run_dir + "/checkpoints").has(outcome.best_eval->step));
  // An epoch has 5 steps, so neither of the first two evaluations is at a multiple of 4.
  Recorder recorder;
  Request watched = request(dir, {{"checkpoint-every", "4"}});
  watched.hooks = {&recorder};
  train(watched);
  ASSERT_GE(recorder.checkpoints.size(), 2U);
  EXPECT_EQ(recorder.checkpoints[1].step, 5U);
  EXPECT_TRUE(recorder.checkpoints[1].best);
}

TEST(Session, DataThatRunsOutAtACheckpointKeepsItsEvaluation) {
  const TempDir dir;
  const Outcome outcome =
      train(request(dir, {{"repeat", "1"}, {"epochs", "0"}, {"steps-per-epoch", "100"}, {"checkpoint-every", "5"}}));
  ASSERT_EQ(outcome.reason, StopReason::data);
  ASSERT_TRUE(outcome.last_eval);
  std::string path;
  const checkpoint::TrainingState state =
      checkpoint::CheckpointStore(outcome.run_dir + "/checkpoints").load_newest(path).header.state;
  ASSERT_TRUE(state.last_eval);
  EXPECT_EQ(state.last_eval->step, 5U);
}

TEST(Session, WritesTheEndOfItsScheduleAndNotHowQuietItWas) {
  const TempDir dir;
  const Outcome outcome = train(request(dir, {{"schedule", "cosine"}, {"warmup-steps", "3"}, {"quiet", "true"}}));
  const std::string yaml = get_file(outcome.run_dir + "/config.yaml");
  EXPECT_THAT(yaml, AllOf(HasSubstr("decay_steps: 7\n"), Not(HasSubstr("quiet"))));
}

TEST(Session, SaysHowItsThreadsWaited) {
  const TempDir dir;
  const auto policy = [&](const std::string& wanted) -> std::string {
    return summary_of(train(request(dir, {{"wait-policy", wanted}, {"epochs", "1"}})).run_dir)["wait_policy"];
  };
  EXPECT_EQ(policy("spin"), "spin");
  EXPECT_EQ(policy("block"), "block");
  ::setenv("OMP_WAIT_POLICY", "passive", 1);
  EXPECT_EQ(policy("auto"), "block");
  ::unsetenv("OMP_WAIT_POLICY");
  EXPECT_EQ(policy("auto"), "brief");
}

TEST(Session, RefusesFarMoreThreadsThanCores) {
  const TempDir dir;
  const int cores = base::available_cores();
  const std::string most = std::to_string(16 * cores);
  const std::string more = std::to_string(16 * cores + 1);
  EXPECT_THAT(message_of<UsageError>([&] {
                train(request(dir, {{"threads", more}}));
              }),
              AllOf(HasSubstr("threads: " + more), HasSubstr(std::to_string(cores) + " cores"), HasSubstr(most)));
}

TEST(Session, AMemberInterruptedBeforeItJoinedHasNotFailed) {
  const TempDir dir;
  role::ClusterProcess process;
  process.spec.workers = {"127.0.0.1:1"};
  process.spec.ps = {"127.0.0.1:2"};  // nobody listens there
  process.task = {cluster::Role::worker, 0};
  process.log = [](std::string_view, const std::string&) {};
  const std::atomic<bool> interrupt = true;
  settings::Configuration configuration;
  for (const auto& [name, text] : request(dir, {{"run-dir", dir / "run"}}).settings) configuration.set(name, text);
  role::SessionOptions options;
  options.process = &process;
  options.interrupt = &interrupt;
  const Outcome outcome = role::Session(configuration, options).run();
  EXPECT_EQ(outcome.reason, StopReason::interrupted);
  EXPECT_EQ(outcome.steps, 0U);
  const nlohmann::json summary = summary_of(dir / "run");
  EXPECT_EQ(summary["stop_reason"], "interrupted");
  EXPECT_FALSE(summary.contains("error")) << summary["error"];
}

TEST(Session, AnInterruptCheckpointsAndEndsCleanly) {
  const TempDir dir;
  Recorder recorder;
  recorder.interrupt_at = 3;
  Request wanted = request(dir, {{"epochs", "100"}});
  wanted.hooks = {&recorder};
  wanted.interrupt = &recorder.interrupt;
  const Outcome outcome = train(wanted);
  EXPECT_EQ(outcome.reason, StopReason::interrupted);
  EXPECT_EQ(summary_of(outcome.run_dir)["stop_reason"], "interrupted");
  EXPECT_TRUE(summary_of(outcome.run_dir)["test_loss"].is_null());
  std::string path;
  EXPECT_EQ(checkpoint::CheckpointStore(outcome.run_dir + "/checkpoints").load_newest(path).header.state.step, 3U);
}

TEST(Session, EvaluationsAndCheckpointsDoNotCountAsTimeOfSteps) {
  static constexpr double kPause = 0.1;
  class Slow : public Hooks {
    void on_eval(const EvalEvent& /*event*/) override {
      std::this_thread::sleep_for(std::chrono::duration<double>(kPause));
    }
    void on_checkpoint(const CheckpointEvent& /*event*/) override {
      std::this_thread::sleep_for(std::chrono::duration<double>(kPause));
    }
  };
  const TempDir dir;
  Slow slow;
  Request wanted = request(dir);
  wanted.hooks = {&slow};
  const Outcome outcome = train(wanted);
  EXPECT_GE(outcome.aside_seconds, 4 * kPause) << "two evaluations and two checkpoints";
  EXPECT_LT(outcome.aside_seconds, outcome.seconds);
  EXPECT_DOUBLE_EQ(outcome.examples_per_second, 600 / (outcome.seconds - outcome.aside_seconds));
  // Step 6 is the first one after epoch 1.
  const std::string line = lines_of(outcome.run_dir + "/steps.csv")[6];
  const std::string before = lines_of(outcome.run_dir + "/steps.csv")[5];
  const auto seconds = [](const std::string& text) { return std::stod(text.substr(text.find(',', 2) + 1)); };
  const double passed = seconds(line) - seconds(before);
  EXPECT_GE(passed, 2 * kPause);
  EXPECT_LE(std::stod(line.substr(line.rfind(',') + 1)), passed - 2 * kPause + 1e-3);

  wanted.settings = {{"resume", outcome.run_dir}, {"epochs", "3"}};
  // The checkpoint it resumes from does not contain the time that writing it took.
  EXPECT_GE(train(wanted).aside_seconds, 5 * kPause) << "three before and two since";
}

TEST(Session, AHookThatThrowsEndsTheRunWithASummary) {
  class Thrower : public Hooks {
    void on_step(const StepEvent& event) override {
      if (event.step == 2) throw IoError("display is gone");
    }
  };
  const TempDir dir;
  Thrower thrower;
  Request wanted = request(dir);
  wanted.hooks = {&thrower};
  EXPECT_EQ(message_of<IoError>([&] { train(wanted); }), "display is gone");
  EXPECT_EQ(summary_of(dir / "runs/lr-1")["error"], "display is gone");
  EXPECT_EQ(lines_of(dir / "runs/lr-1/steps.csv").size(), 3U) << "what was logged before is kept";
}

TEST(Session, AFullDiskStopsTheRunWithAClearMessageAndNoHalfFiles) {
  const TempDir dir;
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit limit{20000, before.rlim_max};  // too little for a checkpoint of 33 kB, enough for the other files
  setrlimit(RLIMIT_FSIZE, &limit);
  const std::string message = message_of<IoError>([&] { train(request(dir)); });
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(message, AllOf(HasSubstr("cannot write"), HasSubstr("step-000000005.ckpt")));
  EXPECT_TRUE(std::filesystem::is_empty(dir / "runs/lr-1/checkpoints"));
  EXPECT_EQ(summary_of(dir / "runs/lr-1")["stop_reason"], "error");
}

TEST(Session, ARunFolderThatCannotBeMadeIsAnError) {
  const TempDir dir;
  EXPECT_THAT(message_of<IoError>([&] {
                train(request(dir, {{"runs-dir", "/proc/nowhere"}}));
              }),
              HasSubstr("/proc/nowhere"));
  train(request(dir, {{"run-dir", dir / "mine"}}));
  EXPECT_THAT(message_of<UsageError>([&] {
                train(request(dir, {{"run-dir", dir / "mine"}}));
              }),
              HasSubstr("already exists"));
}

TEST(Session, MistakesAreFoundBeforeARunFolderIsMade) {
  const TempDir dir;
  EXPECT_THROW(train(request(dir, {{"batch", "5000"}})), UsageError);
  EXPECT_THROW(train(request(dir, {{"model", "lenot"}})), UsageError);
  EXPECT_THROW(train(request(dir, {{"dataset", "mnits"}})), UsageError);
  EXPECT_THROW(train(request(dir, {{"train-limit", "99999999"}})), UsageError);
  EXPECT_FALSE(std::filesystem::exists(dir / "runs"));
}

TEST(RunLog, LogsEveryNStepsOrNotAtAll) {
  const TempDir dir;
  EXPECT_EQ(lines_of(train(request(dir, {{"log-every", "3"}})).run_dir + "/steps.csv").size(), 5U);
  EXPECT_EQ(lines_of(train(request(dir, {{"log-every", "0"}})).run_dir + "/steps.csv").size(), 1U);
}

}  // namespace
}  // namespace lockstep::train
