// What `lockstep info` says about hardware.
#include "hardware_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(HardwareUse, SaysWhatIsNotUsed) {
  EXPECT_EQ(cores_text(2, 2, 2, std::nullopt), "2 of 2 cores, 2 threads");
  EXPECT_THAT(cores_text(2, 16, 2, std::nullopt), HasSubstr("2 of 16 cores, 2 threads; this process may not use"));
  EXPECT_THAT(cores_text(4, 4, 1, 1.5), HasSubstr("4 of 4 cores, 1 thread; its control group allows the time of 1.5"));
  EXPECT_THAT(cores_text(4, 4, 4, 4), Not(HasSubstr("control group")));
  EXPECT_EQ(gpu_text({}, {"cpu"}), "none found");
  EXPECT_THAT(gpu_text({"NVIDIA H200"}, {"cpu"}), HasSubstr("NVIDIA H200: not used"));
  EXPECT_THAT(gpu_text({"NVIDIA H200"}, {"cpu", "cuda"}), HasSubstr("only with --backend cuda"));
  EXPECT_THAT(bf16_text(false, false), HasSubstr("no: "));
  EXPECT_THAT(bf16_text(true, false), HasSubstr("no AMX"));
}

}  // namespace
}  // namespace lockstep::tools
