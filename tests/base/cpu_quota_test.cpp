#include "base/cpu_quota.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/temp_dir.h"

namespace lockstep::base {
namespace {

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

TEST(UsefulThreads, AreNoMoreThanTheWholeCoresOfAQuota) {
  EXPECT_EQ(useful_threads(16, std::nullopt), 16);
  EXPECT_EQ(useful_threads(16, 4.0), 4);
  EXPECT_EQ(useful_threads(16, 2.5), 2);
  EXPECT_EQ(useful_threads(16, 0.25), 1);
  EXPECT_EQ(useful_threads(2, 8.0), 2);
}

}  // namespace
}  // namespace lockstep::base
