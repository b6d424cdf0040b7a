// `lockstep` with model files: training, resuming, describing, and wrong files.
#include "e2e/support.h"

namespace lockstep::testing {
namespace {

class ModelFile : public ProgramTest {
 protected:
  void put(const std::string& name, const std::string& text) const {
    put_file(folder / name, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
  void put_small_model(const std::string& units = "20") const {
    put("small.yaml", "description: a small one\noptions: {units: " + units +
                          "}\ndefaults: {optimizer: adam, lr: 0.001}\n"
                          "layers:\n  - flatten\n  - dropout: 0.1\n  - dense: $units\n  - relu\n  - dense: $classes\n");
  }
  void remove(const std::string& name) const { std::filesystem::remove(folder / name); }
};

TEST_F(ModelFile, TrainsAndIsKeptInTheRun) {
  put_small_model();
  EXPECT_THAT(succeed(quick_train("small.yaml")).out, AllOf(HasSubstr("15,910 parameters"), HasSubstr("runs/small-1")));
  EXPECT_EQ(get_file(folder / "runs/small-1/model.yaml"), get_file(folder / "small.yaml"));
  EXPECT_EQ(summary("small-1")["optimizer"], "adam");
  EXPECT_GT(summary("small-1")["test_accuracy"], 0.5);
}

TEST_F(ModelFile, RunsGoOnWithTheirOwnCopy) {
  put_small_model();
  (void)succeed(quick_train("small.yaml", {"--epochs", "4", "--seed", "3"}));
  (void)succeed(quick_train("small.yaml", {"--seed", "3"}));
  put_small_model("30");
  (void)succeed({"train", "--resume", "runs/small-2", "--epochs", "4"});
  EXPECT_EQ(summary("small-1")["test_loss"], summary("small-2")["test_loss"])
      << "the file has changed, the run has not";
  remove("small.yaml");
  EXPECT_THAT(succeed({"eval", "small-1"}).out, HasSubstr("small at step 80"));
  EXPECT_THAT(succeed({"eval", "runs/small-1/checkpoints/step-000000080.ckpt"}).out, HasSubstr("small at step 80"));
  EXPECT_THAT(succeed({"describe", "runs/small-1"}).out, AllOf(HasSubstr("15,910"), HasSubstr("units=20")));
  EXPECT_THAT(succeed({"describe", "runs/small-1/model.yaml"}).out, HasSubstr("15,910"));
  EXPECT_THAT(fail({"train", "other.yaml", "--resume", "runs/small-1"}, 2), HasSubstr("cannot be used to resume"));
}

TEST_F(ModelFile, ACheckpointOfAnotherModelIsRefused) {
  put_small_model();
  (void)succeed(quick_train("small.yaml"));
  put("runs/small-1/model.yaml", "name: other\noptions: {units: 20}\nlayers: [flatten, dense: $classes]\n");
  EXPECT_THAT(fail({"eval", "small-1"}, 1), AllOf(HasSubstr("'small'"), HasSubstr("'other'")));
  EXPECT_THAT(fail({"train", "--resume", "small-1", "--epochs", "3"}, 1),
              AllOf(HasSubstr("small"), HasSubstr("other")));
}

TEST_F(ModelFile, IsDescribedWithItsOptions) {
  put_small_model();
  EXPECT_THAT(succeed({"describe", "small.yaml", "--options", "units=100", "--batch", "8"}).out,
              AllOf(HasSubstr("small: a small one"), HasSubstr("79,510"), HasSubstr("[8, 100]")));
}

TEST_F(ModelFile, MayBeNamedInASettingsFile) {
  put_small_model();
  put("run.yaml",
      "model: small.yaml\noptions: {units: 5}\ndataset: synthetic\ntrain_limit: 500\nthreads: 1\nepochs: 1\n");
  EXPECT_THAT(succeed({"train", "--config", "run.yaml"}).out, HasSubstr("runs/small-1"));
  EXPECT_EQ(summary("small-1")["parameters"], 784 * 5 + 5 + 5 * 10 + 10);
}

TEST_F(ModelFile, WhatIsWrongIsOneLineWithItsPlace) {
  put("bad.yaml", "layers:\n  - conv: {channels: 6, kernel: 5}\n  - dense: 10\n");
  for (const Words& command : {Words{"train", "bad.yaml"}, Words{"describe", "bad.yaml"}}) {
    EXPECT_THAT(fail(command, 2),
                HasSubstr("bad.yaml:3:5: layer 'dense1' (dense): x [64, 6, 24, 24] must be a matrix"));
  }
  put("bad.yaml", "layers: [flatten, dense: 10, rellu]\n");
  EXPECT_THAT(fail({"train", "bad.yaml"}, 2), HasSubstr("bad.yaml:1:30: unknown layer 'rellu' (did you mean 'relu'?)"));
  put("bad.yaml", "defaults: {optimizer: adamm}\nlayers: [flatten, dense: 10]\n");
  EXPECT_THAT(fail({"train", "bad.yaml"}, 2), AllOf(HasSubstr("bad.yaml: defaults: optimizer"), HasSubstr("adamm")));
  put("bad.yaml", "");
  EXPECT_THAT(fail({"train", "bad.yaml"}, 2), HasSubstr("bad.yaml: is empty"));
  EXPECT_THAT(fail({"train", "absent.yaml"}, 1), HasSubstr("absent.yaml"));
  std::filesystem::create_directory(folder / "folder.yaml");
  EXPECT_THAT(fail({"train", "folder.yaml"}, 1), HasSubstr("folder.yaml"));
  EXPECT_FALSE(std::filesystem::exists(folder / "runs"));
}

TEST_F(ModelFile, OtherImagesThanItTakesAreRefusedWithBothShapes) {
  put("square.yaml", "image: [1, 20, 20]\nlayers:\n  - reshape: [400]\n  - dense: $classes\n");
  EXPECT_THAT(fail(quick_train("square.yaml"), 2),
              AllOf(HasSubstr("[1, 28, 28]"), HasSubstr("[1, 20, 20]"), HasSubstr("square.yaml:3:5")));
}

TEST_F(ModelFile, HugeSizesAreRefusedWithTheMemory) {
  put("huge.yaml", "layers:\n  - flatten\n  - dense: 2000000000\n  - dense: 10\n");
  EXPECT_THAT(fail({"train", "huge.yaml"}, 2), AllOf(HasSubstr("huge.yaml:3:5"), HasSubstr("GB")));
}

TEST_F(ModelFile, OnnxFilesAreKeptInTheRunToo) {
  const char* root = std::getenv("LOCKSTEP_SOURCE");  // NOLINT(concurrency-mt-unsafe)
  std::filesystem::copy_file(std::string(root) + "/tests/interchange/data/lenet.onnx", folder / "net.onnx");
  (void)succeed(quick_train("net.onnx", {"--epochs", "1"}));
  EXPECT_EQ(get_file(folder / "runs/net-1/model.onnx"), get_file(folder / "net.onnx"));
  remove("net.onnx");
  (void)succeed({"train", "--resume", "net-1", "--epochs", "2"});
  EXPECT_THAT(succeed({"eval", "net-1"}).out, HasSubstr("net at step 40"));
}

TEST_F(ModelFile, TheListOfModelsMentionsFiles) { EXPECT_THAT(succeed({"models"}).out, HasSubstr("my-model.yaml")); }

}  // namespace
}  // namespace lockstep::testing
