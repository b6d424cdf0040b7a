// Scheduled faults of programs that are not ours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>

#include "base/temp_dir.h"
#include "guest/guest_run.h"
#include "launch/fault_maker.h"
#include "lockstep/error.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(GuestFaults, ThatAreRefusedLeaveNoFolder) {
  const TempDir folder;
  guest::GuestOptions options{.command = {"true"}, .run_dir = folder / "run", .cluster = {}};
  options.cluster.workers = 2;
  options.cluster.ps = 0;
  const auto refused = [&](const std::string& faults) {
    options.faults = faults;
    return message_of<UsageError>([&] { guest::run_guest(options); });
  };
  EXPECT_THAT(refused("at 1s kill worker:7"), HasSubstr("there is no worker:7"));
  EXPECT_THAT(refused("at 1s hit worker:1"), HasSubstr("'hit'"));
  EXPECT_THAT(folder.names(), IsEmpty());
}

/// A schedule whose signals are kept instead of sent.
struct Kept {
  std::vector<std::pair<std::string, int>> signals;
  launch::FaultMaker faults;

  explicit Kept(const std::string& text) : faults(emulate::parse_faults(text), nullptr) {
    faults.signal_by([this](const std::string& role, int number) { signals.emplace_back(role, number); });
    for (const char* role : {"worker:0", "worker:1"}) faults.started(role, 1);
    faults.begin();
  }
};

TEST(GuestFaults, AStoppedRoleStaysStoppedWhenAllAreContinued) {
  const TempDir folder;
  Kept kept("at 0s stop worker:1 for 100s");
  kept.faults.make_due(folder / "faults.jsonl");
  kept.faults.resumed({});
  EXPECT_THAT(kept.signals, ElementsAre(Pair("worker:1", SIGSTOP), Pair("worker:1", SIGSTOP)));
  kept.faults.ended("worker:1");
  kept.faults.resumed({});
  EXPECT_EQ(kept.signals.size(), 2U) << "it has ended";
}

TEST(GuestFaults, TheScheduleWaitsWhileAllAreStopped) {
  const TempDir folder;
  Kept kept("at 0s stop worker:1 for 100s");
  kept.faults.resumed(std::chrono::hours(1));
  EXPECT_THAT(kept.faults.make_due(folder / "faults.jsonl"), IsEmpty());
}

TEST(GuestFaults, ARoleThatGoesOnIsNotStoppedAgain) {
  const TempDir folder;
  Kept kept("at 0s stop worker:1 for 0.001s");
  while (kept.signals.size() < 2) kept.faults.make_due(folder / "faults.jsonl");
  kept.faults.resumed({});
  EXPECT_THAT(kept.signals, ElementsAre(Pair("worker:1", SIGSTOP), Pair("worker:1", SIGCONT)));
}

}  // namespace
}  // namespace lockstep::testing
