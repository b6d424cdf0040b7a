#include "train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "exchange/local_exchange.h"
#include "support.h"

namespace lockstep::train {
namespace {

using ::testing::AllOf;
using testing::dropout_model;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::exploding_model;
using testing::Flags;
using ::testing::HasSubstr;
using testing::message_of;
using testing::small_data;
using testing::Training;

Flags lr_flags(const Flags& more = {}) {
  Flags flags{{"model", "lr"}, {"lr", "0.1"}, {"batch", "64"}, {"epochs", "1"}};
  for (const auto& [name, text] : more) flags[name] = text;
  return flags;
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b, float tolerance) {
  ASSERT_EQ(a.size(), b.size());
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  EXPECT_LE(largest, tolerance);
}

TEST(Trainer, LearnsSyntheticDigits) {
  Training training(lr_flags({{"epochs", "5"}, {"lr", "0.5"}}), small_data(2000, 500));
  EXPECT_EQ(training.run(), StopReason::epochs);
  ASSERT_EQ(training.recorder.evals.size(), 5U);
  EXPECT_GT(training.recorder.evals.back().accuracy, 0.85);
  EXPECT_LT(training.recorder.evals.back().loss, training.recorder.evals.front().loss);
}

TEST(Trainer, SeesEveryExampleOncePerEpochTheShortLastBatchIncluded) {
  Training training(lr_flags({{"epochs", "2"}}), small_data(300));
  training.run();
  std::vector<int64_t> sizes;
  for (const StepEvent& step : training.recorder.steps) sizes.push_back(step.examples);
  EXPECT_THAT(sizes, ElementsAre(64, 64, 64, 64, 44, 64, 64, 64, 64, 44));
  EXPECT_EQ(training.state.examples, 600U);
  EXPECT_EQ(training.state.epochs, 2);
  EXPECT_EQ(training.recorder.steps[4].epoch, 1);
  EXPECT_EQ(training.recorder.steps[5].epoch, 2);
}

TEST(Trainer, GivesTheSameBitsTwice) {
  for (const char* model : {"lr", "lenet"}) {
    Training first(lr_flags({{"model", model}}));
    Training second(lr_flags({{"model", model}}));
    first.run();
    second.run();
    EXPECT_EQ(first.parameters(), second.parameters()) << model;
    EXPECT_EQ(first.recorder.losses(), second.recorder.losses()) << model;
  }
}

TEST(Trainer, GivesTheSameBitsWithAnyNumberOfThreads) {
  for (const char* model : {"autoencoder", "lenet"}) {
    Training one({{"model", model}, {"epochs", "1"}, {"threads", "1"}}, small_data(200));
    one.run();
    for (const char* threads : {"2", "5", "16"}) {
      Training many({{"model", model}, {"epochs", "1"}, {"threads", threads}}, small_data(200));
      many.run();
      EXPECT_EQ(one.parameters(), many.parameters()) << model << ", " << threads << " threads";
      EXPECT_EQ(one.recorder.losses(), many.recorder.losses()) << model << ", " << threads << " threads";
    }
  }
}

TEST(Trainer, AnotherSeedGivesAnotherOrder) {
  Training first(lr_flags());
  Training second(lr_flags({{"seed", "2"}}));
  first.run();
  second.run();
  EXPECT_NE(first.recorder.losses(), second.recorder.losses());
}

TEST(Accumulate, TwoHalvesEqualOneWholeBatch) {
  for (const char* optimizer : {"sgd", "momentum"}) {
    Training whole(lr_flags({{"optimizer", optimizer}, {"epochs", "3"}}), small_data(320));
    Training halves(lr_flags({{"optimizer", optimizer}, {"epochs", "3"}, {"batch", "32"}, {"accumulate", "2"}}),
                    small_data(320));
    whole.run();
    halves.run();
    ASSERT_EQ(whole.state.step, halves.state.step);
    EXPECT_EQ(whole.state.examples, halves.state.examples);
    expect_near(whole.parameters(), halves.parameters(), 2e-6F);
    expect_near(whole.recorder.losses(), halves.recorder.losses(), 1e-5F);
  }
}

TEST(Accumulate, UnequalMicroBatchesCountByTheirExamples) {
  // 100 examples: 64 + 36 in one step; a plain mean of the two means would be another gradient.
  Training whole(lr_flags({{"batch", "100"}, {"epochs", "4"}}), small_data(100));
  Training parts(lr_flags({{"batch", "64"}, {"accumulate", "2"}, {"epochs", "4"}}), small_data(100));
  whole.run();
  parts.run();
  EXPECT_EQ(parts.state.step, 4U);
  expect_near(whole.parameters(), parts.parameters(), 2e-6F);
  expect_near(whole.recorder.losses(), parts.recorder.losses(), 1e-5F);
}

TEST(Accumulate, SumsOverTheBatchAreAddedAsTheyAre) {
  const Flags flags{{"model", "autoencoder"}, {"optimizer", "sgd"}, {"lr", "1e-5"}, {"epochs", "2"}};
  Flags whole_flags = flags;
  whole_flags["batch"] = "100";
  Flags part_flags = flags;
  part_flags["batch"] = "64";  // 64 + 36
  part_flags["accumulate"] = "2";
  Training whole(whole_flags, small_data(100));
  Training parts(part_flags, small_data(100));
  whole.run();
  parts.run();
  EXPECT_EQ(whole.recorder.steps.size(), parts.recorder.steps.size());
  expect_near(whole.parameters(), parts.parameters(), 1e-6F);
  EXPECT_NEAR(whole.recorder.evals.back().loss, parts.recorder.evals.back().loss, 1e-3);
}

TEST(Autoencoder, LearnsWithoutLabelsAndHasNoAccuracy) {
  data::Dataset dataset = small_data(500);
  dataset.train.labels.clear();
  dataset.test.labels.clear();
  for (const char* kind : {"plain", "gaussian", "masking", "variational"}) {
    Training training({{"model", "autoencoder"}, {"options", "kind=" + std::string(kind)}, {"epochs", "8"}}, dataset);
    EXPECT_EQ(training.run(), StopReason::epochs);
    const auto& evals = training.recorder.evals;
    EXPECT_LT(evals.back().loss, 0.8 * evals.front().loss) << kind;
    EXPECT_TRUE(std::isnan(evals.back().accuracy)) << kind;
  }
}

TEST(Accumulate, AnEpochsLastUpdateMayHaveFewerMicroBatches) {
  Training training(lr_flags({{"batch", "64"}, {"accumulate", "3"}, {"epochs", "2"}}), small_data(300));
  training.run();
  std::vector<int64_t> sizes;
  for (const StepEvent& step : training.recorder.steps) sizes.push_back(step.examples);
  EXPECT_THAT(sizes, ElementsAre(192, 108, 192, 108));
  EXPECT_EQ(training.setup.steps_per_epoch(), 2U);
}

TEST(Accumulate, RandomOpsAreKeyedByTheRowOfTheWholeBatch) {
  // A whole batch and its parts hold the same rows, so dropout must make the same masks.
  Training whole({{"model", "dropout"}, {"batch", "40"}, {"epochs", "2"}}, small_data(120), {dropout_model()});
  Training parts({{"model", "dropout"}, {"batch", "10"}, {"accumulate", "4"}, {"epochs", "2"}}, small_data(120),
                 {dropout_model()});
  whole.run();
  parts.run();
  expect_near(whole.parameters(), parts.parameters(), 2e-6F);
}

TEST(StopRules, TheFirstMetWins) {
  Training by_steps(lr_flags({{"steps", "7"}, {"epochs", "9"}}));
  EXPECT_EQ(by_steps.run(), StopReason::steps);
  EXPECT_EQ(by_steps.state.step, 7U);
  EXPECT_EQ(by_steps.state.epochs, 1);

  Training by_epochs(lr_flags({{"steps", "7"}, {"epochs", "1"}}));
  EXPECT_EQ(by_epochs.run(), StopReason::epochs);
  EXPECT_EQ(by_epochs.state.step, 5U);

  Training by_seconds(lr_flags({{"seconds", "0.000001"}, {"epochs", "0"}}));
  EXPECT_EQ(by_seconds.run(), StopReason::seconds);
  EXPECT_EQ(by_seconds.state.step, 1U);

  Training by_accuracy(lr_flags({{"stop-accuracy", "0.1"}, {"eval-every", "2"}, {"epochs", "50"}}));
  EXPECT_EQ(by_accuracy.run(), StopReason::accuracy);
  EXPECT_LE(by_accuracy.state.step, 20U);

  Training by_loss(lr_flags({{"stop-loss", "2.2"}, {"stop-accuracy", "1"}, {"eval-every", "1"}, {"epochs", "50"}}));
  EXPECT_EQ(by_loss.run(), StopReason::loss);
  EXPECT_LE(by_loss.recorder.evals.back().loss, 2.2);
}

TEST(StopRules, DataThatRunsOutEndsTheTraining) {
  Training training(lr_flags({{"repeat", "2"}, {"epochs", "0"}}));
  EXPECT_EQ(training.run(), StopReason::data);
  EXPECT_EQ(training.state.step, 10U);
  Training accumulating(lr_flags({{"repeat", "1"}, {"epochs", "0"}, {"accumulate", "4"}, {"steps-per-epoch", "100"}}));
  EXPECT_EQ(accumulating.run(), StopReason::data);
  EXPECT_EQ(accumulating.state.examples, 300U) << "the last update is made of what was left";
  EXPECT_EQ(accumulating.state.step, 2U);
}

TEST(StopRules, StepsPerEpochDecouplesEpochsFromPasses) {
  Training training(lr_flags({{"steps-per-epoch", "3"}, {"epochs", "4"}}));
  EXPECT_EQ(training.run(), StopReason::epochs);
  EXPECT_EQ(training.state.step, 12U);
  EXPECT_EQ(training.recorder.evals.size(), 4U);
}

TEST(Evaluation, ComesEveryNStepsAtEpochEndsAndAtTheEnd) {
  Training training(lr_flags({{"eval-every", "2"}, {"steps", "7"}, {"epochs", "0"}}));
  training.run();
  std::vector<uint64_t> steps;
  for (const EvalEvent& eval : training.recorder.evals) steps.push_back(eval.step);
  EXPECT_THAT(steps, ElementsAre(2, 4, 5, 6, 7)) << "an epoch has 5 steps";
  std::vector<int64_t> epochs;
  for (const EvalEvent& eval : training.recorder.evals) epochs.push_back(eval.epoch);
  EXPECT_THAT(epochs, ElementsAre(1, 1, 1, 2, 2));
}

TEST(Evaluation, DoesNotDependOnItsBatchSizeOrDisturbTraining) {
  Training often(lr_flags({{"eval-every", "1"}, {"eval-batch", "7"}}), small_data(300, 50));
  Training rarely(lr_flags({{"eval-batch", "1000"}}), small_data(300, 50));
  often.run();
  rarely.run();
  EXPECT_EQ(often.parameters(), rarely.parameters());
  EXPECT_NEAR(often.recorder.evals.back().loss, rarely.recorder.evals.back().loss, 1e-6);
  EXPECT_EQ(often.recorder.evals.back().accuracy, rarely.recorder.evals.back().accuracy);
  EXPECT_EQ(often.recorder.evals.back().examples, 50);
}

TEST(Evaluation, UsesTheValidationSplitWhereAsked) {
  data::Dataset dataset = small_data(300, 50);
  data::hold_out(dataset, 40);
  Training training(lr_flags({{"eval-split", "validation"}, {"holdout", "40"}}), std::move(dataset));
  training.run();
  EXPECT_EQ(training.recorder.evals.back().examples, 40);
  EXPECT_EQ(training.state.examples, 260U);
}

TEST(NonFinite, LossStopsTheRunAndSaysAtWhichStep) {
  Training training({{"model", "exploding"}}, small_data(), {exploding_model()});
  const std::string message = message_of<NonFiniteError>([&] { training.run(); });
  const uint64_t good_steps = training.recorder.steps.size();
  EXPECT_GT(good_steps, 0U);
  EXPECT_THAT(message,
              AllOf(HasSubstr("the loss became -inf"), HasSubstr("at step " + std::to_string(good_steps + 1))));
  EXPECT_THAT(training.recorder.losses(), Each(::testing::Truly([](float loss) { return std::isfinite(loss); })));
}

TEST(Interrupt, FinishesTheStepAndEnds) {
  Training training(lr_flags({{"epochs", "100"}}));
  training.recorder.interrupt_at = 3;
  EXPECT_EQ(training.run(), StopReason::interrupted);
  EXPECT_EQ(training.state.step, 3U);
  EXPECT_TRUE(training.recorder.evals.empty()) << "an interrupted run ends at once";
}

TEST(Schedules, ReachTheEndOfTrainingByThemselves) {
  Training training(lr_flags({{"schedule", "linear"}, {"epochs", "2"}, {"warmup-steps", "2"}, {"lr", "1"}}));
  training.run();
  std::vector<float> rates;
  for (const StepEvent& step : training.recorder.steps) rates.push_back(step.learning_rate);
  EXPECT_THAT(rates, ElementsAre(0.5F, 1, 1, 0.875F, 0.75F, 0.625F, 0.5F, 0.375F, 0.25F, 0.125F));
}

TEST(Schedules, EndWhereTheDataRunsOut) {
  Training training(lr_flags({{"schedule", "linear"}, {"repeat", "2"}, {"epochs", "0"}, {"lr", "1"}}));
  EXPECT_EQ(training.setup.total_steps(), 10U);
  EXPECT_EQ(training.run(), StopReason::data);
  EXPECT_NEAR(training.recorder.steps.back().learning_rate, 0.1, 1e-6);
  EXPECT_EQ(Training(lr_flags({{"repeat", "2"}, {"epochs", "9"}})).setup.total_steps(), 10U);
  EXPECT_EQ(Training(lr_flags({{"repeat", "2"}, {"accumulate", "2"}, {"epochs", "0"}})).setup.total_steps(), 6U);
  const Flags across{{"repeat", "2"}, {"accumulate", "2"}, {"epochs", "0"}, {"steps-per-epoch", "100"}};
  Training stream(lr_flags(across));
  EXPECT_EQ(stream.setup.total_steps(), 5U);
  stream.run();
  EXPECT_EQ(stream.state.step, 5U);
  const Flags endless{{"repeat", "1000000000000000"}, {"schedule", "cosine"}, {"epochs", "0"}};
  EXPECT_EQ(Training(lr_flags(endless)).setup.settings().decay_steps, 1000000000000000);
}

TEST(Clipping, ReportsTheNormAndShortensTheStep) {
  Training training(lr_flags({{"clip-norm", "0.001"}, {"lr", "1"}, {"steps", "1"}}));
  training.run();
  EXPECT_GT(training.recorder.steps[0].gradient_norm, 0.001F);
  double squares = 0;
  for (const float value : training.parameters()) squares += static_cast<double>(value) * value;
  EXPECT_NEAR(std::sqrt(squares), 0.001, 1e-5);
}

TEST(Setup, RefusesWhatDoesNotFitTheData) {
  EXPECT_THROW(Training(lr_flags({{"batch", "301"}}), small_data(300)), UsageError);
  EXPECT_THROW(
      Training(lr_flags({{"model", "lenet"}}), data::synthetic({.train = 100, .test = 10, .shape = {1, 4, 4}})),
      UsageError);
  data::Dataset unlabelled = small_data(300);
  unlabelled.train.labels.clear();
  EXPECT_THROW(Training(lr_flags(), unlabelled), UsageError);
  EXPECT_THROW(Training(lr_flags({{"model", "autoencoder"}, {"stop-accuracy", "0.5"}}), small_data(300)), UsageError);
  EXPECT_THROW(Training(lr_flags(), data::Dataset{}), Error);
}

/// The first of two members; the second is lost after three steps, without the gradients it was at.
class Shrinking final : public exchange::Exchange {
 public:
  Shrinking(program::ParameterStore& parameters, const exchange::LocalOptions& options) : local_(parameters, options) {}
  base::Result<std::optional<exchange::StepInfo>> join() override {
    exchange::StepInfo info;
    info.plan = plan_;
    return std::optional<exchange::StepInfo>(info);
  }
  void begin(const exchange::StepStart& start) override { local_.begin(start); }
  void ready(program::ParameterRange range, exchange::Event event) override { local_.ready(range, event); }
  base::Result<exchange::StepInfo> finish(const exchange::BatchReport& report) override {
    base::Result<exchange::StepInfo> result = local_.finish(report);
    if (result && result.value().step == 3) {
      result.value().plan = plan_;
      result.value().plan->data = data::unapplied(plan_, std::array<int64_t, 2>{3, 3});
      result.value().plan->shard = {0, 1};
      result.value().plan->rounds_done = 3;
    }
    return result;
  }
  [[nodiscard]] std::vector<std::string> slot_names() const override { return local_.slot_names(); }
  base::Result<exchange::Snapshot> snapshot() override { return local_.snapshot(); }

 private:
  exchange::LocalExchange local_;
  data::Plan plan_{.shard = {0, 2}, .batch = 10, .examples = 100};
};

struct Shrunk {
  explicit Shrunk(const Flags& flags) : settings(testing::settings_from(flags)) {
    Together together;
    together.gradients_per_update = 2;
    together.one_of_each_member = true;
    together.exchange = [](program::ParameterStore& parameters, const exchange::LocalOptions& options) {
      return std::make_unique<Shrinking>(parameters, options);
    };
    Setup setup(settings, settings::Configuration().model("lr"), small_data(100), nullptr, &together);
    Parts parts = setup.parts();
    parts.hooks = {&recorder};
    Trainer trainer(parts, setup.trainer_options(), setup.state());
    trainer.run(RunClock());
  }
  /// The total told with step `step`, from 1.
  [[nodiscard]] uint64_t total(size_t step) const { return recorder.steps.at(step - 1).total_steps; }

  settings::Settings settings;
  testing::Recorder recorder;
};

TEST(Trainer, TheTotalOfStepsFollowsTheMembersThatAreLeft) {
  const Shrunk epochs(lr_flags({{"batch", "10"}, {"epochs", "3"}}));
  EXPECT_EQ(epochs.total(1), 15U) << "two members make five steps of a pass";
  EXPECT_EQ(epochs.total(4), 27U) << "three steps, four of the rest of the pass, ten of each later pass";
  EXPECT_EQ(epochs.recorder.steps.size(), 27U);
  const Shrunk limited(lr_flags({{"batch", "10"}, {"epochs", "3"}, {"steps", "20"}}));
  EXPECT_EQ(limited.total(1), 15U);
  EXPECT_EQ(limited.total(4), 20U);
  EXPECT_EQ(limited.recorder.steps.size(), 20U);
  const Shrunk counted(lr_flags({{"batch", "10"}, {"epochs", "3"}, {"steps-per-epoch", "4"}}));
  EXPECT_EQ(counted.total(1), 12U);
  EXPECT_EQ(counted.total(4), 12U) << "epochs of a fixed length stay";
  EXPECT_EQ(counted.recorder.steps.size(), 12U);
}

}  // namespace
}  // namespace lockstep::train
