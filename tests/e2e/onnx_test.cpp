// `lockstep export`, and `lockstep train` and `lockstep describe` of ONNX files.
#include "e2e/support.h"

namespace lockstep::testing {
namespace {

class Onnx : public ProgramTest {
 protected:
  [[nodiscard]] static std::string pytorch_lenet() {
    return std::string(std::getenv("LOCKSTEP_SOURCE")) + "/tests/interchange/data/lenet.onnx";  // NOLINT
  }
};

TEST_F(Onnx, AFileOfPyTorchTrainsGoesOnAndIsEvaluated) {
  std::filesystem::copy_file(pytorch_lenet(), folder / "theirs.onnx");
  EXPECT_THAT(succeed(quick_train("theirs.onnx")).out, AllOf(HasSubstr("made by pytorch; it has no dropout"),
                                                             HasSubstr("61,706 parameters"), HasSubstr("theirs-1")));
  const auto first = summary("theirs-1");
  EXPECT_LT(first["train_loss"], 2.0) << "ln(10) is where it starts";
  EXPECT_GT(first["test_accuracy"], 0.5);
  EXPECT_EQ(get_file(folder / "runs/theirs-1/model.onnx"), get_file(pytorch_lenet()));
  std::filesystem::remove(folder / "theirs.onnx");
  (void)succeed({"train", "--resume", "theirs-1", "--epochs", "3"});
  EXPECT_LT(summary("theirs-1")["train_loss"], first["train_loss"]);
  EXPECT_THAT(succeed({"eval", "theirs-1"}).out, HasSubstr("theirs at step 60"));
  EXPECT_THAT(succeed({"export", "theirs-1", "ours.onnx"}).out, HasSubstr("61,706 parameters"));
}

TEST_F(Onnx, AFileOfPyTorchIsDescribedByItsLayers) {
  EXPECT_THAT(succeed({"describe", pytorch_lenet(), "--batch", "8"}).out,
              AllOf(HasSubstr("made by pytorch"), HasSubstr("conv1"), HasSubstr("[8, 84]"), HasSubstr("61,706"),
                    HasSubstr("it has no dropout")));
}

TEST_F(Onnx, AnExportSaysWhatItWroteAndTrainsOn) {
  (void)succeed(quick_train("lenet", {"--name", "m"}));
  const std::string out = succeed({"export", "m-1", "lenet.onnx", "--checkpoint", "newest"}).out;
  EXPECT_THAT(out, AllOf(HasSubstr("lenet at step 40 -> lenet.onnx"), HasSubstr("opset 17"),
                         HasSubstr("input   images [batch, 1, 28, 28]"), HasSubstr("output  scores [batch, 10]"),
                         HasSubstr("output  probabilities [batch, 10]")));
  EXPECT_THAT(succeed({"export", "runs/m-1/checkpoints/step-000000040.ckpt", "one.onnx", "--batch", "1"}).out,
              HasSubstr("images [1, 1, 28, 28]"));
  (void)succeed({"export", "m-1", "-o", "same.onnx", "--checkpoint", "newest"});
  EXPECT_EQ(get_file(folder / "same.onnx"), get_file(folder / "lenet.onnx"));
  EXPECT_THAT(fail({"export", "m-1", "a.onnx", "-o", "b.onnx"}, 2), HasSubstr("'a.onnx' and --output 'b.onnx'"));
  EXPECT_THAT(fail({"export", "m-1"}, 2), HasSubstr("the file to write is missing"));
  (void)succeed(quick_train("lenet.onnx", {"--name", "on"}));
  EXPECT_LT(summary("on-1")["train_loss"], summary("m-1")["train_loss"]) << "it goes on from what was exported";
}

TEST_F(Onnx, AFileIsEvaluatedAndPredictsAsTheRunDoes) {
  (void)succeed(quick_train("lenet", {"--name", "m"}));
  (void)succeed({"export", "m-1", "lenet.onnx"});
  const auto answer = [&](const Words& words) { return nlohmann::json::parse(succeed(words).out); };
  const auto run = answer({"eval", "m-1", "--json"});
  const auto file = answer({"eval", "lenet.onnx", "--limit", "200", "--json"});
  EXPECT_NEAR(file["loss"].get<double>(), run["loss"].get<double>(), 1e-4);
  EXPECT_EQ(file["accuracy"], run["accuracy"]);
  EXPECT_TRUE(file["step"].is_null());
  EXPECT_THAT(succeed({"eval", "lenet.onnx", "--limit", "10"}).out, HasSubstr("lenet.onnx on 10 test examples: "));
  EXPECT_EQ(answer({"predict", "lenet.onnx", "--test", "1", "--json"})[0]["label"],
            answer({"predict", "m-1", "--test", "1", "--json"})[0]["label"]);
  EXPECT_THAT(fail({"eval", "lenet.onnx", "--checkpoint", "newest"}, 2), HasSubstr("holds one state of a model"));
  EXPECT_THAT(fail({"eval", pytorch_lenet(), "--dataset", "images"}, 2), HasSubstr("28"));
}

TEST_F(Onnx, WhatIsWrongIsOneLineAndLeavesNoFile) {
  (void)succeed(quick_train("lr", {"--name", "m"}));
  EXPECT_THAT(fail({"export", "m-1", "model.txt"}, 2), HasSubstr("must end in .onnx"));
  EXPECT_THAT(fail({"export", "m-2", "m.onnx"}, 2), HasSubstr("no run 'm-2'"));
  EXPECT_THAT(fail({"export", "m-1", "nowhere/m.onnx"}, 1), HasSubstr("nowhere/m.onnx"));
  EXPECT_FALSE(std::filesystem::exists(folder / "m.onnx"));
  const Bytes cut = [] {
    const std::string whole = get_file(pytorch_lenet());
    return Bytes(whole.begin(), whole.begin() + 5000);
  }();
  put_file(folder / "cut.onnx", cut);
  for (const Words& command : {Words{"train", "cut.onnx"}, Words{"describe", "cut.onnx"}}) {
    EXPECT_THAT(fail(command, 1), AllOf(HasSubstr("cut.onnx"), HasSubstr("damaged")));
  }
  EXPECT_THAT(fail({"train", "absent.onnx"}, 1), HasSubstr("absent.onnx"));
}

TEST_F(Onnx, OtherImagesAreRefusedWithBothShapes) {
  std::string csv = "a,b,c,d,label\n";
  for (int i = 0; i < 60; ++i) csv += "0.1,0.2,0.3,0.4," + std::to_string(i % 10) + "\n";
  put_file(folder / "own.csv", {reinterpret_cast<const uint8_t*>(csv.data()), csv.size()});
  EXPECT_THAT(fail({"train", pytorch_lenet(), "--dataset", "own.csv"}, 2),
              AllOf(HasSubstr("rows of 4 values"), HasSubstr("[1, 28, 28]")));
}

}  // namespace
}  // namespace lockstep::testing
