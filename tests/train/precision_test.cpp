// Training with precision bf16: it learns as float32 does, and its results are float32.
#include <gtest/gtest.h>

#include "backend/cpu/isa.h"
#include "support.h"

namespace lockstep::train {
namespace {

using testing::Flags;
using testing::message_of;
using testing::Recorder;
using testing::TempDir;
using testing::Training;

/// Wide enough for bfloat16: two convolutions of 32 and 64 channels and a large product.
nn::ModelDef wide_model() {
  nn::ModelDef model;
  model.name = "wide";
  model.description = "two wide convolutions";
  model.image = {1, 28, 28};
  model.defaults = {.optimizer = "adam", .learning_rate = 1e-3F, .batch = 50, .epochs = 2};
  model.build = [](nn::Graph& graph, const nn::BuildRequest& request) {
    const nn::Value images = nn::image_input(graph, request);
    nn::Value x = ops::max_pool(ops::relu(nn::conv(images, "conv1", 32, 5, 1, 2)), ops::window(2, 2));
    x = ops::max_pool(ops::relu(nn::conv(x, "conv2", 64, 3, 1, 1)), ops::window(3, 2));
    x = ops::relu(nn::dense(ops::flatten(x), "dense", 512));
    return nn::classifier(images, nn::dense(x, "scores", request.classes));
  };
  return model;
}

Flags wide_flags(const std::string& precision) {
  return {{"model", "wide"}, {"epochs", "2"}, {"threads", "2"}, {"precision", precision}};
}

class Bf16Training : public ::testing::Test {
 protected:
  void SetUp() override {
    backend::cpu::limit_isa_from_environment();
    if (!backend::cpu::has_avx512_bf16()) GTEST_SKIP() << "this CPU has no AVX512_BF16";
  }
};

TEST_F(Bf16Training, LearnsAsFloat32Does) {
  const data::Dataset dataset = data::synthetic({.train = 600, .test = 400});
  double accuracy[2];
  float first_loss[2];
  int i = 0;
  for (const char* precision : {"f32", "bf16"}) {
    Training training(wide_flags(precision), dataset, {wide_model()});
    training.run();
    ASSERT_FALSE(training.recorder.evals.empty());
    accuracy[i] = training.recorder.evals.back().accuracy;
    first_loss[i++] = training.recorder.losses().front();
  }
  EXPECT_GT(accuracy[0], 0.9);
  EXPECT_NEAR(accuracy[0], accuracy[1], 0.01);
  EXPECT_NEAR(first_loss[0], first_loss[1], 0.01F);
  EXPECT_NE(first_loss[0], first_loss[1]) << "bfloat16 was not used at all";
}

TEST_F(Bf16Training, GivesTheSameBitsAgain) {
  Training a(wide_flags("bf16"), testing::small_data(), {wide_model()});
  Training b(wide_flags("bf16"), testing::small_data(), {wide_model()});
  a.run();
  b.run();
  EXPECT_EQ(a.parameters(), b.parameters());
}

TEST_F(Bf16Training, ParametersKeepWhatBfloat16WouldLose) {
  Training training(wide_flags("bf16"), testing::small_data(), {wide_model()});
  training.run();
  size_t finer = 0;
  for (const float value : training.parameters()) finer += (std::bit_cast<uint32_t>(value) & 0xffffU) != 0 ? 1 : 0;
  EXPECT_GT(finer, training.parameters().size() / 2);
}

TEST(Precision, IsPartOfWhatARunIs) {
  backend::cpu::limit_isa_from_environment();
  const TempDir dir;
  Recorder recorder;
  const data::Dataset dataset = testing::small_data();
  const Flags flags{{"model", "lr"}, {"epochs", "1"}, {"threads", "1"}, {"runs-dir", dir / "runs"}};
  const Outcome first = testing::train_session(flags, recorder, {}, dataset);
  const std::string message = message_of<UsageError>([&] {
    (void)testing::train_session({{"resume", first.run_dir}, {"precision", "bf16"}}, recorder, {}, dataset);
  });
  EXPECT_NE(message.find("precision"), std::string::npos) << message;
}

TEST(Precision, IsRefusedByABackendWithoutIt) {
  const std::string message = message_of<UsageError>([] {
    const Training training(Flags{{"model", "lr"}, {"backend", "null"}, {"precision", "bf16"}});
  });
  EXPECT_NE(message.find("'null'"), std::string::npos) << message;
  EXPECT_NE(message.find("f32"), std::string::npos) << message;
}

}  // namespace
}  // namespace lockstep::train
