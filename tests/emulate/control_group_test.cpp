// CPU quotas with real control groups. Where the machine does not permit them (no root), the tests say so and pass by.
#include "emulate/control_group.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>

#include "base/temp_dir.h"
#include "lockstep/error.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using emulate::ControlGroup;
using Clock = std::chrono::steady_clock;
using ::testing::HasSubstr;

emulate::GroupLimits limits(double cores) { return {.cores = cores, .for_what = "cpu-quota"}; }

std::unique_ptr<ControlGroup> make_quota(const std::string& name, double cores) {
  try {
    return std::make_unique<ControlGroup>(name, limits(cores));
  } catch (const IoError&) {
    return nullptr;
  }
}

#define QUOTA_OR_SKIP(variable, name, cores)         \
  const auto variable = make_quota((name), (cores)); \
  if (!(variable)) GTEST_SKIP() << "no control groups here"

std::vector<std::string> groups_of(pid_t maker) {
  std::vector<std::string> result;
  for (const char* folder : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup"}) {
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("lockstep-" + std::to_string(maker) + "-")) result.push_back(entry.path().string());
    }
  }
  return result;
}

/// A process that does `work` and no more.
pid_t start(const std::function<void()>& work) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  work();
  _exit(0);
}

void burn() {
  for (;;) {
  }
}

/// Kills it and gives the CPU seconds that it had.
double end(pid_t pid) {
  kill(pid, SIGKILL);
  rusage usage{};
  wait4(pid, nullptr, 0, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

TEST(ControlGroup, MayUseLaterWhatItLeftOfAPeriodAlsoAfterAChangeOfItsShare) {
  QUOTA_OR_SKIP(group, "burst", 0.5);
  const std::string folder = fs::path(group->files().front()).parent_path();
  const bool second = fs::exists(folder + "/cpu.max");
  const std::string file = folder + (second ? "/cpu.max.burst" : "/cpu.cfs_burst_us");
  if (!fs::exists(file)) GTEST_SKIP() << "a kernel without bursts";
  const auto burst = [&] {
    int64_t microseconds = -1;
    std::ifstream(file) >> microseconds;
    return microseconds;
  };
  EXPECT_EQ(burst(), 10'000);
  group->set_cores(0.25);
  EXPECT_EQ(burst(), 5000) << "of a smaller quota";
  group->set_cores(0.75);
  EXPECT_EQ(burst(), 15'000);
}

TEST(ControlGroup, AProcessThatWantsAllGetsItsShare) {
  QUOTA_OR_SKIP(quota, "share", 0.25);
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t pid = start([&] {
    char word = 0;
    (void)!read(go[0], &word, 1);  // in its group
    burn();
  });
  quota->add(pid);
  const auto started = Clock::now();
  ASSERT_EQ(write(go[1], "x", 1), 1);
  const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - started).count(); };
  // Others may want the cores, so it may take a while until it has wanted more than its share this often.
  while (passed() < 120 && (passed() < 2 || quota->throttling().throttled_periods <= 10)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  const double used = end(pid);
  EXPECT_LT(used / passed(), 0.35);
  EXPECT_GT(used, 0.2);
  EXPECT_GT(quota->throttling().periods, 10U);
  EXPECT_GT(quota->throttling().throttled_periods, 10U);
  EXPECT_GT(quota->throttling().throttled_seconds, 0.1);
  close(go[0]);
  close(go[1]);
}

TEST(ControlGroup, AnIdleProcessIsNotHeldBack) {
  QUOTA_OR_SKIP(quota, "idle", 0.5);
  const pid_t pid = start([] { pause(); });
  quota->add(pid);
  EXPECT_EQ(quota->throttling().throttled_periods, 0U);
  end(pid);
}

TEST(ControlGroup, TheGroupGoesWithItsOwnerAndTheProcessStays) {
  const pid_t pid = start([] { pause(); });
  {
    QUOTA_OR_SKIP(quota, "owner", 1.5);
    quota->add(pid);
    EXPECT_EQ(groups_of(getpid()).size(), 1U);
  }
  EXPECT_TRUE(groups_of(getpid()).empty());
  EXPECT_EQ(kill(pid, 0), 0);
  end(pid);
}

TEST(ControlGroup, AProcessThatHasEndedIsNoError) {
  QUOTA_OR_SKIP(quota, "ended", 1);
  const pid_t pid = start([] {});
  waitpid(pid, nullptr, 0);
  EXPECT_NO_THROW(quota->add(pid));
}

TEST(ControlGroup, WhatADeadLauncherLeftIsRemovedTheNextTime) {
  QUOTA_OR_SKIP(mine, "mine", 1);
  const pid_t launcher = start([] { _exit(new ControlGroup("left", limits(1)) == nullptr); });
  waitpid(launcher, nullptr, 0);
  ASSERT_EQ(groups_of(launcher).size(), 1U);
  emulate::remove_leftover_groups();
  EXPECT_TRUE(groups_of(launcher).empty());
  EXPECT_EQ(groups_of(getpid()).size(), 1U) << "the living keep theirs";
}

TEST(ControlGroup, AShareThatIsNoneIsAnError) {
  EXPECT_THAT(message_of<UsageError>([] { ControlGroup("none", limits(0)); }),
              HasSubstr("cpu-quota: 0 is not allowed"));
}

}  // namespace
}  // namespace lockstep::testing
