#include <gtest/gtest.h>

#include "allocation_counter.h"
#include "base/temp_dir.h"
#include "observe/tensorboard/summary_writer.h"

namespace lockstep::observe {
namespace {

TEST(SummaryWriter, AScalarAllocatesNothingOnceWarm) {
  const lockstep::testing::TempDir dir;
  SummaryWriter writer(dir.path(), {});
  const auto write = [&](uint64_t steps) {
    for (uint64_t step = 1; step <= steps; ++step) {
      writer.scalar("train/loss", step, 0.5);
      writer.scalar("train/examples_per_second", step, 1e5);
    }
  };
  write(1000);
  testing_support::start_counting();
  write(1000);
  EXPECT_EQ(testing_support::stop_counting().ours, 0U);
}

}  // namespace
}  // namespace lockstep::observe
