// What `lockstep info` says about hardware: limits of control groups, and parts that are not used.
#include "hardware_use.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/temp_dir.h"

namespace lockstep::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::TempDir;

void put(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  testing::put_file(path, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

TEST(AllowedCores, TheSmallestLimitOfAGroupAndThoseAboveCounts) {
  const TempDir root;
  const std::string membership = "0::/slice/job\n";
  EXPECT_FALSE(allowed_cores(membership, root / ""));
  put(root / "slice/job/cpu.max", "max 100000\n");
  EXPECT_FALSE(allowed_cores(membership, root / ""));
  put(root / "slice/cpu.max", "150000 100000\n");
  EXPECT_EQ(allowed_cores(membership, root / ""), 1.5);
  put(root / "slice/job/cpu.max", "50000 100000\n");
  EXPECT_EQ(allowed_cores(membership, root / ""), 0.5);
}

TEST(AllowedCores, TheFirstVersionOfControlGroupsCountsToo) {
  const TempDir root;
  put(root / "cpu,cpuacct/job/cpu.cfs_quota_us", "200000\n");
  put(root / "cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  put(root / "memory/job/cpu.cfs_quota_us", "1\n");
  EXPECT_EQ(allowed_cores("7:memory:/job\n4:cpu,cpuacct:/job\n0::/\n", root / ""), 2);
  put(root / "cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_FALSE(allowed_cores("4:cpu,cpuacct:/job\n", root / ""));
  EXPECT_FALSE(allowed_cores("nonsense\n4\n", root / ""));
}

TEST(HardwareUse, SaysWhatIsNotUsed) {
  EXPECT_EQ(cores_text(2, 2, 2, std::nullopt), "2 of 2 cores, 2 threads");
  EXPECT_THAT(cores_text(2, 16, 2, std::nullopt), HasSubstr("2 of 16 cores, 2 threads; this process may not use"));
  EXPECT_THAT(cores_text(4, 4, 4, 1.5), HasSubstr("the time of 1.5 cores, to which --threads does not adapt"));
  EXPECT_THAT(cores_text(4, 4, 4, 4), Not(HasSubstr("control group")));
  EXPECT_EQ(gpu_text({}, {"cpu"}), "none found");
  EXPECT_THAT(gpu_text({"NVIDIA H200"}, {"cpu"}), HasSubstr("NVIDIA H200: not used"));
  EXPECT_THAT(gpu_text({"NVIDIA H200"}, {"cpu", "cuda"}), HasSubstr("only with --backend cuda"));
  EXPECT_THAT(bf16_text(false, false), HasSubstr("no: "));
  EXPECT_THAT(bf16_text(true, false), HasSubstr("no AMX"));
}

}  // namespace
}  // namespace lockstep::tools
