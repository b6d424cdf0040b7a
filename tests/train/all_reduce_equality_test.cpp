// Replicas that train by all-reduce compute the same as one process over the same micro-batches: for every model of the
// zoo, and every setting that could count examples or randomness differently.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/checkpoint.h"
#include "nn/zoo.h"
#include "support.h"

namespace lockstep::train {
namespace {

using testing::dropout_model;
using testing::Flags;
using testing::Recorder;
using testing::small_data;
using testing::TempDir;

Flags operator+(Flags flags, const Flags& more) {
  for (const auto& [name, text] : more) flags[name] = text;
  return flags;
}

struct Trained {
  std::vector<float> losses;
  std::vector<int64_t> examples;  ///< examples of each step
  int64_t own_examples = 0;       ///< all steps together, in the first replica
  std::vector<float> values;      ///< parameters and optimizer state at the end
  std::vector<EvalEvent> evals;
  Outcome outcome;
};

Trained train_on(const data::Dataset& dataset, const Flags& flags) {
  const TempDir dir;
  Recorder recorder;
  const std::vector<nn::ModelDef> models{dropout_model()};
  Trained trained;
  trained.outcome = testing::train_session(
      Flags{{"threads", "1"}, {"runs-dir", dir / "runs"}, {"eval-batch", "20"}} + flags, recorder, models, dataset);
  trained.losses = recorder.losses();
  for (const StepEvent& step : recorder.steps) {
    trained.examples.push_back(step.examples);
    trained.own_examples += step.own_examples;
  }
  trained.values = checkpoint::read_checkpoint(recorder.checkpoints.back().file).values;
  trained.evals = recorder.evals;
  return trained;
}

/// Returns the largest difference of two elements, relative to the largest element.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return 1e9;
  double most = 0;
  double largest = 1e-30;
  for (size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(double{a[i]} - double{b[i]}));
    largest = std::max(largest, std::abs(double{a[i]}));
  }
  return most / largest;
}

void expect_equal_within_rounding(const Trained& a, const Trained& b, double tolerance = 2e-5) {
  EXPECT_EQ(a.examples, b.examples);
  EXPECT_LT(distance(a.losses, b.losses), tolerance);
  EXPECT_LT(distance(a.values, b.values), tolerance);
  ASSERT_EQ(a.evals.size(), b.evals.size());
  for (size_t i = 0; i < a.evals.size(); ++i) {
    EXPECT_NEAR(a.evals[i].loss, b.evals[i].loss, tolerance * std::abs(a.evals[i].loss));
  }
}

// Every model.

struct ZooCase {
  std::string model;
  Flags flags;
  int64_t batch = 4;
  data::ImageShape shape{1, 28, 28};
  bool even = false;  ///< without short rounds
};

class Zoo : public ::testing::TestWithParam<ZooCase> {};

/// The last round of each pass is short, and some replicas have no data in it.
TEST_P(Zoo, ThreeReplicasHaveTheLossesOfOneProcessThatAccumulatesThree) {
  const ZooCase& zoo = GetParam();
  const int64_t odd = zoo.even ? 0 : 2;
  const data::Dataset dataset = data::synthetic({.train = 30 * zoo.batch + odd, .test = 4, .shape = zoo.shape});
  const Flags flags =
      Flags{{"model", zoo.model}, {"batch", std::to_string(zoo.batch)}, {"steps", "20"}, {"epochs", "0"}} + zoo.flags;
  const Trained alone = train_on(dataset, flags + Flags{{"accumulate", "3"}});
  const Trained together = train_on(dataset, flags + Flags{{"replicas", "3"}});
  ASSERT_EQ(alone.losses.size(), 20U);
  EXPECT_EQ(alone.examples[10], zoo.even ? 3 * zoo.batch : odd);
  expect_equal_within_rounding(alone, together);
  EXPECT_NE(alone.losses.front(), alone.losses.back());
}

const Flags kSum{{"reduce", "sum"}};
const std::vector<ZooCase> kZoo{
    {"lr", {}},
    {"lenet", {}},
    {"lenet-valid", {{"options", "activation=tanh"}}},
    {"alexnet", {}, 1, {3, 64, 64}},
    {"alexnet", kSum + Flags{{"options", "features_only=true,lrn=true"}}, 2, {3, 64, 64}},
    {"autoencoder", kSum},
    {"autoencoder", kSum + Flags{{"options", "kind=gaussian"}}},
    {"autoencoder", kSum + Flags{{"options", "kind=masking"}}},
    // Its loss is a sum over the batch plus a mean, so it depends on how a batch is cut.
    {"autoencoder", kSum + Flags{{"options", "kind=variational"}}, 4, {1, 28, 28}, true},
    {"autoencoder-large", kSum + Flags{{"options", "kind=masking"}}},
    // A sample point that rounding moves over a pixel's border changes the gradient: a small learning rate limits the
    // growth of the difference, and a seed is chosen with which it does not happen.
    {"stn", {{"lr", "1e-5"}}, 4, {1, 40, 40}},
    {"stn-large", {{"lr", "1e-5"}, {"seed", "3"}}, 4, {1, 40, 40}},
};

INSTANTIATE_TEST_SUITE_P(Models, Zoo, ::testing::ValuesIn(kZoo), [](const auto& tested) {
  std::string name = tested.param.model;
  if (tested.param.flags.contains("options")) name += "_" + tested.param.flags.at("options");
  std::replace_if(
      name.begin(), name.end(), [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

TEST(ZooOfModels, HasNoModelThatIsNotComparedHere) {
  for (const nn::ModelDef& model : nn::zoo()) {
    EXPECT_TRUE(std::any_of(kZoo.begin(), kZoo.end(), [&](const ZooCase& zoo) { return zoo.model == model.name; }))
        << model.name;
  }
}

// Every way of counting.

struct Way {
  std::string name;
  Flags flags;
};

class Ways : public ::testing::TestWithParam<Way> {
 protected:
  /// 3 x 20 fits six times and leaves 11: 4, 4 and 3.
  static data::Dataset data() { return small_data(371, 40); }
  static Flags flags() {
    return Flags{{"model", "dropout"}, {"batch", "20"}, {"epochs", "3"}, {"lr", "0.05"}} + GetParam().flags;
  }
};

TEST_P(Ways, OfTrainingAreThoseOfOneProcess) {
  const Trained alone = train_on(data(), flags() + Flags{{"accumulate", "3"}});
  const Trained together = train_on(data(), flags() + Flags{{"replicas", "3"}});
  EXPECT_EQ(alone.outcome.examples, together.outcome.examples);
  EXPECT_EQ(alone.outcome.epochs, together.outcome.epochs);
  EXPECT_EQ(alone.outcome.reason, together.outcome.reason);
  expect_equal_within_rounding(alone, together);
}

TEST_P(Ways, OfTrainingAreThoseOfOneProcessWithThreeTimesTheBatch) {
  const Trained alone = train_on(data(), flags() + Flags{{"batch", "60"}});
  const Trained together = train_on(data(), flags() + Flags{{"replicas", "3"}});
  expect_equal_within_rounding(alone, together);
}

TEST_P(Ways, OfTrainingStayWhenReplicasAccumulateThemselves) {
  const Trained alone = train_on(data(), flags() + Flags{{"accumulate", "6"}});
  const Trained together = train_on(data(), flags() + Flags{{"replicas", "3"}, {"accumulate", "2"}});
  expect_equal_within_rounding(alone, together);
}

INSTANTIATE_TEST_SUITE_P(
    All, Ways,
    ::testing::Values(Way{"plain", {}}, Way{"momentum", {{"optimizer", "momentum"}}},
                      Way{"nesterov", {{"optimizer", "momentum"}, {"nesterov", "true"}, {"weight-decay", "0.01"}}},
                      Way{"adam", {{"optimizer", "adam"}, {"lr", "0.002"}, {"eps", "1e-4"}}},
                      Way{"clipped", {{"clip-norm", "0.3"}, {"optimizer", "momentum"}}},
                      Way{"cosine", {{"schedule", "cosine"}, {"warmup_steps", "4"}}},
                      Way{"repeat", {{"repeat", "2"}, {"epochs", "0"}}},
                      Way{"small_buckets", {{"bucket-mb", "0.002"}, {"optimizer", "adam"}, {"lr", "0.002"}}}),
    [](const auto& tested) { return tested.param.name; });

TEST(Replicas, ThatAccumulateAcrossShortRoundsCountEveryExampleOnce) {
  // 62 = 3 x 20 + 2: every other round has no data for the third replica, and in turn begins an update.
  const Flags flags{{"model", "dropout"}, {"batch", "20"}, {"steps-per-epoch", "4"}, {"epochs", "3"}, {"lr", "0.05"}};
  const Trained alone = train_on(small_data(62), flags + Flags{{"batch", "60"}, {"accumulate", "3"}});
  const Trained together = train_on(small_data(62), flags + Flags{{"replicas", "3"}, {"accumulate", "3"}});
  expect_equal_within_rounding(alone, together);
}

TEST(Replicas, WithoutShardsEachGoThroughAllTheData) {
  const Flags flags{{"model", "lr"}, {"batch", "20"}, {"epochs", "2"}, {"shard", "none"}};
  const Trained together = train_on(small_data(100), flags + Flags{{"replicas", "3"}});
  EXPECT_EQ(together.outcome.examples, 600U);
  EXPECT_EQ(together.outcome.steps, 10U);
  for (const int64_t examples : together.examples) EXPECT_EQ(examples, 60);
  EXPECT_EQ(together.own_examples, 200);
}

TEST(Replicas, ShareAGlobalBatch) {
  const Flags flags{{"model", "dropout"}, {"epochs", "2"}, {"replicas", "3"}};
  const Trained each = train_on(small_data(), flags + Flags{{"batch", "30"}});
  const Trained shared = train_on(small_data(), flags + Flags{{"global-batch", "90"}});
  EXPECT_EQ(each.losses, shared.losses);
  EXPECT_EQ(each.values, shared.values);
}

TEST(Replicas, WithMeansOfSumsTakeSmallerSteps) {
  const Flags flags{{"model", "autoencoder"}, {"optimizer", "sgd"}, {"lr", "1e-5"}, {"batch", "20"}, {"epochs", "1"}};
  const Trained mean = train_on(small_data(120), flags + Flags{{"replicas", "3"}});
  const Trained third = train_on(small_data(120), flags + Flags{{"accumulate", "3"}, {"lr", "3.3333334e-6"}});
  expect_equal_within_rounding(mean, third);
}

TEST(Replicas, GiveTheSameBitsTwice) {
  for (const char* count : {"2", "3"}) {
    for (const Flags& how : {Flags{}, Flags{{"wire", "bf16"}}, Flags{{"top-k", "0.1"}}, Flags{{"bucket-mb", "0.01"}}}) {
      const Flags flags = Flags{{"model", "lenet"}, {"batch", "20"}, {"epochs", "1"}, {"replicas", count}} + how;
      const Trained first = train_on(small_data(), flags);
      const Trained second = train_on(small_data(), flags);
      EXPECT_EQ(first.losses, second.losses);
      EXPECT_EQ(first.values, second.values);
    }
  }
}

}  // namespace
}  // namespace lockstep::train
