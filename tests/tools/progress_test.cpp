// The output of a training in one process: the bar's line, the lines of a file, and the closing words.
#include "display/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/temp_dir.h"
#include "display/bar_line.h"
#include "display/cluster_closing.h"
#include "display/train_messages.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(BarLine, ABarIsAtEveryUsualWidth) {
  const std::vector<std::string> parts{"epoch 12/20",
                                       "step 12,345",
                                       "loss 0.1234",
                                       "acc 98.7 %",
                                       "123,456 examples/s",
                                       "12:34 left",
                                       "backward 45 %, forward 30 %, data wait 12 %"};
  for (const size_t width : {50U, 60U, 80U, 100U, 120U, 140U, 160U, 200U}) {
    const std::string line = display::bar_line({}, 0.5, parts, width);
    EXPECT_THAT(line, AllOf(StartsWith("[####"), HasSubstr("50 %"), HasSubstr("step 12,345"))) << width;
    EXPECT_LE(terminal::display_width(line), width) << line;
  }
  EXPECT_THAT(display::bar_line({}, 0.5, parts, 120), HasSubstr("12:34 left"));
  EXPECT_THAT(display::bar_line({}, 0.5, parts, 200), HasSubstr("data wait 12 %"));
}

TEST(BarLine, WordsGoBeforeABarWithoutRoom) {
  EXPECT_EQ(display::bar_line({}, 0.5, {"epoch 1/2", "step 7", "loss 1"}, 24), "epoch 1/2  step 7");
  EXPECT_EQ(display::bar_line({}, std::nan(""), {"epoch 1", "", "loss 1"}, 80), "epoch 1  loss 1");
}

TEST(Progress, AFileGetsTheTitlesFirst) {
  ::testing::internal::CaptureStdout();
  display::Progress progress({}, "test", std::chrono::milliseconds(0));
  train::StartEvent start;
  start.total_steps = 10;
  start.steps_per_epoch = 5;
  progress.on_start(start);
  train::StepEvent step;
  step.step = 1;
  step.epoch = 1;
  step.loss = 2;
  step.examples = 8;
  progress.on_step(step);
  train::EvalEvent evaluation;
  evaluation.step = 1;
  evaluation.epoch = 1;
  progress.on_eval(evaluation);
  std::fflush(stdout);
  const std::string text = ::testing::internal::GetCapturedStdout();
  EXPECT_THAT(text.substr(0, text.find('\n')), AllOf(HasSubstr("epoch"), HasSubstr("train loss"))) << text;
  EXPECT_EQ(text.find("train loss"), text.rfind("train loss")) << "once";
}

/// Returns the closing words for an outcome.
std::string closing(const train::Outcome& outcome) {
  ::testing::internal::CaptureStdout();
  settings::Settings settings;
  settings.batch = 64;
  display::print_closing({}, settings, outcome, "lockstep", "");
  std::fflush(stdout);
  return ::testing::internal::GetCapturedStdout();
}

TEST(Closing, TimesHaveOneForm) {
  train::Outcome outcome;
  outcome.steps = 100;
  outcome.seconds = 7.2;
  outcome.aside_seconds = 0.03;
  outcome.examples_per_second = 2 * 64 / 0.0717;
  EXPECT_THAT(closing(outcome), HasSubstr("71.7 ms per step"));
}

TEST(Closing, CommandsCanBeCopied) {
  train::Outcome outcome;
  outcome.steps = 1;
  outcome.run_dir = "my runs/it's-1";
  EXPECT_THAT(closing(outcome), HasSubstr("lockstep eval 'my runs/it'\\''s-1'\n"));
  outcome.reason = train::StopReason::interrupted;
  EXPECT_THAT(closing(outcome), HasSubstr("lockstep train --resume 'my runs/"));
  outcome.run_dir = "runs/lr-1";
  EXPECT_THAT(closing(outcome), HasSubstr("lockstep train --resume runs/lr-1\n"));
}

TEST(Closing, AFailureSuggestsNothingThatWouldFail) {
  const testing::TempDir dir;
  train::Outcome outcome;
  outcome.reason = train::StopReason::error;
  outcome.run_dir = dir.path();
  EXPECT_THAT(closing(outcome), AllOf(HasSubstr("failed before the first step"), Not(HasSubstr("lockstep "))));
  std::filesystem::create_directories(dir / "checkpoints");
  testing::put_file(dir / "checkpoints/step-000000010.ckpt", {});
  outcome.steps = 12;
  EXPECT_THAT(closing(outcome), AllOf(HasSubstr("failed after step 12"), HasSubstr("lockstep train --resume "),
                                      Not(HasSubstr("lockstep eval"))));
}

TEST(Closing, RestartsAreThoseOfTheSummary) {
  const testing::TempDir dir;
  const std::string text = R"({"stop_reason":"epochs","steps":10,"workers":[{"role":"worker:0","restarts":7}]})";
  testing::put_file(dir / "summary.json", {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  ::testing::internal::CaptureStdout();
  display::print_cluster_closing({}, {}, dir.path(), "lockstep", [](const std::string&) { return 3; });
  std::fflush(stdout);
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), ::testing::ContainsRegex("worker:0 +7\n"));
}

}  // namespace
}  // namespace lockstep::tools
