// CPU quotas with real control groups. Tests are skipped with the reason if the machine does not allow them.
#include "emulate/control_group.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
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
#include "emulate/claims.h"
#include "emulate/cluster.h"
#include "emulate/rights.h"
#include "lockstep/error.h"

namespace lockstep::testing {
namespace {

namespace fs = std::filesystem;
using emulate::ControlGroup;
using Clock = std::chrono::steady_clock;
using ::testing::HasSubstr;

emulate::GroupLimits limits(double cores) { return {.cores = cores, .for_what = "cpu-quota"}; }

#define RIGHTS_OR_SKIP(why) \
  if (const std::string reason = (why); !reason.empty()) GTEST_SKIP() << reason

#define QUOTA_OR_SKIP(variable, name, cores)        \
  RIGHTS_OR_SKIP(emulate::why_no_control_groups()); \
  const auto variable = std::make_unique<ControlGroup>((name), limits(cores))

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

/// Starts a process that runs only `work`.
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

/// Kills it and returns its CPU seconds.
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
    (void)!read(go[0], &word, 1);  // now in its group
    burn();
  });
  quota->add(pid);
  const auto started = Clock::now();
  ASSERT_EQ(write(go[1], "x", 1), 1);
  const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - started).count(); };
  // Other processes may want the cores, so it may take a while until it was throttled this often.
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
  RIGHTS_OR_SKIP(emulate::why_no_control_groups());
  const pid_t pid = start([] { pause(); });
  {
    ControlGroup quota("owner", limits(1.5));
    quota.add(pid);
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

/// Runs `work` in a process that has its own process ids and sees no others, as in a container. Returns true if it
/// succeeded.
bool in_container(const std::function<bool()>& work) {
  const pid_t outer = start([&] {
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0) _exit(2);
    const pid_t inner = start([&] {
      if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) _exit(3);
      if (mount("proc", "/proc", "proc", 0, nullptr) != 0) _exit(4);
      _exit(work() ? 0 : 1);
    });
    int status = 0;
    waitpid(inner, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 5);
  });
  int status = 0;
  waitpid(outer, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) < 2) << status;
  return status == 0;
}

TEST(ControlGroup, AContainerDoesNotTakeTheGroupsOfOthersForLeftovers) {
  RIGHTS_OR_SKIP(emulate::why_no_emulation());
  const ControlGroup mine("mine", limits(1));
  const emulate::ClaimFile claim({{.cores = 0.01}}, emulate::ClaimFile::Cores::leave);
  EXPECT_TRUE(in_container([] {
    emulate::remove_leftovers();
    return emulate::claims().size() == 1;
  }));
  EXPECT_EQ(groups_of(getpid()).size(), 1U);
  EXPECT_EQ(emulate::claims().size(), 1U);
}

TEST(ControlGroup, LeftoversOfADeadContainerAreRemoved) {
  RIGHTS_OR_SKIP(emulate::why_no_emulation());
  EXPECT_TRUE(in_container([] {
    static_cast<void>(new ControlGroup("left", limits(1)));
    static_cast<void>(new emulate::ClaimFile({{.cores = 0.01}}, emulate::ClaimFile::Cores::leave));
    return true;
  }));
  EXPECT_EQ(groups_of(1).size(), 1U) << "in its container, the maker is process 1";
  emulate::remove_leftovers();
  EXPECT_TRUE(groups_of(1).empty());
  EXPECT_TRUE(emulate::claims().empty());
}

TEST(ControlGroup, AShareThatIsNoneIsAnError) {
  EXPECT_THAT(message_of<UsageError>([] { ControlGroup("none", limits(0)); }),
              HasSubstr("cpu-quota: 0 is not allowed"));
}

}  // namespace
}  // namespace lockstep::testing
