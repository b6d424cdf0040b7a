// Figures of other programs.
#include "guest/figures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/temp_dir.h"
#include "lockstep/error.h"
#include "observe/tensorboard/summary_writer.h"

namespace lockstep::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<guest::FigureSource> sources(const std::vector<std::string>& texts) {
  std::vector<guest::FigureSource> all;
  for (const std::string& text : texts) all.push_back(guest::parse_source(text));
  return all;
}

void put_text(const std::string& path, const std::string& text) {
  put_file(path, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

TEST(Figures, SourcesAreReadAndShownInTheSameForm) {
  for (const char* text :
       {"output:a (b|c)=[0-9]+: x", "csv:a b.csv#val#loss", "events:runs#loss", "epoch-events:r#t"}) {
    const guest::FigureSource source = guest::parse_source(std::string("loss=") + text);
    EXPECT_EQ(source.figure, "loss");
    EXPECT_EQ(source.text(), text);
  }
  for (const char* wrong : {"", "loss", "loss=", "loss=x", "=output:x", "loss=lines:x", "loss=csv:x", "loss=csv:#x",
                            "loss=events:x#", "loss=output:", "loss=output:(", "loss=output:(a)\\1"}) {
    EXPECT_THAT(message_of<UsageError>([&] { (void)guest::parse_source(wrong); }), HasSubstr("figure ")) << wrong;
  }
}

TEST(Figures, LinesGiveCurvesOverTheirStepsAndEpochs) {
  guest::OutputReader reader(sources({"accuracy=output:acc[a-z]* ([0-9.]+)", "loss=output:loss ([-+0-9.e]+)",
                                      "step=output:step (\\d+)", "examples_per_second=output:\\d+ img"}));
  reader.read("step 10 loss 2.5 accuracy 0.1", 1);
  reader.read("something else, loss is none", 2);
  reader.read("step 20 loss +5e-1", 3);
  reader.read("accuracy 0.8", 4);
  reader.read("900 img", 5);
  const guest::Figures figures = guest::join(reader.points());
  ASSERT_EQ(figures.evals.size(), 2U);
  EXPECT_EQ(figures.evals[0].step, 10);
  EXPECT_EQ(figures.evals[0].loss, 2.5);
  EXPECT_EQ(figures.evals[1].accuracy, 0.8);
  EXPECT_EQ(figures.evals[1].loss, 0.5);
  EXPECT_EQ(figures.evals[1].seconds, 4);
  EXPECT_EQ(figures.values.at("step"), 20);
  EXPECT_FALSE(figures.values.contains("examples_per_second")) << "the whole match is not a number";
}

TEST(Figures, AColumnOfACsvFileIsPlacedByItsOtherColumns) {
  const TempDir folder;
  put_text(folder / "log.csv", "epoch,step,val_loss,time\n1,100,0.9,5\n2,200,0.7,9\n");
  const guest::Points points = guest::read_files(
      sources({"loss=csv:" + (folder / "log.csv") + "#val_loss", "epoch=csv:" + (folder / "log.csv") + "#epoch",
               "seconds=csv:" + (folder / "log.csv") + "#time"}),
      0);
  const guest::Figures figures = guest::join(points);
  ASSERT_EQ(figures.evals.size(), 2U);
  EXPECT_EQ(figures.evals[1].epoch, 2);
  EXPECT_EQ(figures.evals[1].seconds, 9);
  EXPECT_EQ(figures.evals[1].loss, 0.7);
  EXPECT_EQ(figures.values.at("seconds"), 9);
}

TEST(Figures, EventFilesArePlacedByTheirStepsOrEpochs) {
  const TempDir folder;
  {
    observe::SummaryWriter writer(folder / "logs/validation", [](const std::string&) {});
    writer.scalar("epoch_accuracy", 0, 0.5);
    writer.scalar("epoch_accuracy", 1, 0.75);
  }
  const guest::Figures epochs =
      guest::join(guest::read_files(sources({"accuracy=epoch-events:" + (folder / "logs") + "#epoch_accuracy"}), 0));
  ASSERT_EQ(epochs.evals.size(), 2U);
  EXPECT_EQ(epochs.evals[1].epoch, 2);
  EXPECT_EQ(epochs.evals[1].accuracy, 0.75);
  const guest::Figures steps =
      guest::join(guest::read_files(sources({"accuracy=events:" + (folder / "logs") + "#epoch_accuracy"}), 0));
  EXPECT_EQ(steps.evals[1].step, 1);
}

TEST(Figures, AFigureWithoutAPointIsMissing) {
  const auto wanted = sources({"accuracy=output:a", "loss=output:b"});
  EXPECT_THAT(guest::missing(wanted, {{"loss", 1}}), ElementsAre("accuracy"));
}

TEST(Figures, AnExpressionTakesLinearTimeOnAnyLine) {
  guest::OutputReader reader(sources({"loss=output:(x+x+)+y([0-9]+)"}));
  reader.read(std::string(60000, 'x'), 1);
  EXPECT_TRUE(reader.points().empty());
}

}  // namespace
}  // namespace lockstep::testing
