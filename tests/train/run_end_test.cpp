// The end of a run, as read from its folder.
#include "run/run_end.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temp_dir.h"

namespace lockstep::train {
namespace {

class Folder : public ::testing::Test {
 protected:
  void write(const std::string& reason, uint64_t steps) const {
    base::write_whole_file(run.path() + "/summary.json",
                           fmt::format(R"({{"steps": {}, "stop_reason": "{}"}})", steps, reason));
  }
  ::lockstep::testing::TempDir run;
};

TEST_F(Folder, ASummaryOfBeforeSaysNothing) {
  write("epochs", 90);
  const run::RunEnd end(run.path());
  EXPECT_FALSE(end.look());
  write("interrupted", 120);
  const std::optional<exchange::Ending> found = end.look();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->reason, StopReason::interrupted);
  EXPECT_EQ(found->step, 120U);
}

TEST_F(Folder, AnErrorOrWhatCannotBeReadIsNoEnd) {
  const run::RunEnd end(run.path());
  write("error", 7);
  EXPECT_FALSE(end.look());
  base::write_whole_file(run.path() + "/summary.json", "{\"steps\": -1");
  EXPECT_FALSE(end.look());
  EXPECT_FALSE(run::read_ending(run.path() + "/nowhere.json"));
}

TEST_F(Folder, KeepsTheLatestStepOfCheckpointsAndSummary) {
  EXPECT_EQ(run::kept_step(run.path()), 0U);
  write("epochs", 90);
  EXPECT_EQ(run::kept_step(run.path()), 90U);
  base::make_directories(run.path() + "/checkpoints");
  base::write_whole_file(run.path() + "/checkpoints/step-000000120.ckpt", "");
  EXPECT_EQ(run::kept_step(run.path()), 120U);
  write("epochs", 150);
  EXPECT_EQ(run::kept_step(run.path()), 150U);
}

}  // namespace
}  // namespace lockstep::train
