#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "base/cores.h"
#include "base/loops.h"
#include "base/team.h"

namespace lockstep::base {
namespace {

/// Returns how often each part ran.
std::vector<int> runs_of(Split split) {
  std::vector<std::atomic<int>> runs(static_cast<size_t>(split.parts));
  parallel(split, [&](int part, int parts) {
    EXPECT_EQ(parts, split.parts);
    ++runs[static_cast<size_t>(part)];
  });
  return {runs.begin(), runs.end()};
}

TEST(Parallel, EveryPartRunsOnce) {
  for (const int team : {1, 2, 3, 5, 16, 64}) {
    for (const int parts : {1, 2, team / 2 + 1, team, team + 3}) {
      EXPECT_EQ(runs_of({parts, team}), std::vector<int>(static_cast<size_t>(parts), 1)) << parts << " of " << team;
    }
  }
}

TEST(Parallel, EveryPartRunsOnceOnOpenMpThreads) {
  follow_openmp();
  for (const int team : {2, 3, 5}) EXPECT_EQ(runs_of({team, team}), std::vector<int>(static_cast<size_t>(team), 1));
  leave_openmp();
}

/// Each part reads what other threads have written in the loop before. The sizes change, so threads sit loops out.
void pass_on(int loops, int most, useconds_t pause) {
  std::vector<int> values(static_cast<size_t>(most), 0);
  std::vector<int> next = values;
  for (int loop = 1; loop <= loops; ++loop) {
    const int parts = 2 + loop % (most - 1);
    parallel({parts, most}, [&](int part, int of) {
      for (int i = part; i < most; i += of)
        next[static_cast<size_t>(i)] = values[static_cast<size_t>((i + 1) % most)] + 1;
    });
    std::swap(values, next);
    if (pause > 0) ::usleep(pause);
    ASSERT_EQ(std::count(values.begin(), values.end(), loop), most) << "loop " << loop;
  }
}

TEST(Parallel, ALoopSeesWhatTheLoopBeforeHasWritten) {
  pass_on(3'000, 3, 0);
  pass_on(300, 16, 0);
}

TEST(Parallel, ThreadsWakeThatHaveFallenAsleep) { pass_on(30, 5, 3'000); }

void expect_inner_loops_on_their_thread() {
  std::atomic<int> elsewhere{0};
  std::atomic<int> runs{0};
  parallel({4, 4}, [&](int, int) {
    const std::thread::id here = std::this_thread::get_id();
    parallel({3, 3}, [&](int, int) {
      ++runs;
      if (std::this_thread::get_id() != here) ++elsewhere;
    });
  });
  EXPECT_EQ(runs, 12);
  EXPECT_EQ(elsewhere, 0);
}

TEST(Parallel, ALoopInsideALoopStaysOnItsThread) {
  expect_inner_loops_on_their_thread();
  follow_openmp();
  expect_inner_loops_on_their_thread();
  leave_openmp();
}

TEST(Parallel, LoopsTakeDenormalNumbersAsZero) {
  volatile float small = 2e-38F;
  std::vector<float> halves(5, 1.0F);
  const auto halve = [&](int part, int) { halves[static_cast<size_t>(part)] = small / 4; };
  for (const int parts : {1, 5}) {
    halves.assign(5, 0.0F);
    parallel({parts, 5}, halve);
    EXPECT_EQ(halves, std::vector<float>(5, 0.0F)) << parts << " parts";
  }
  EXPECT_GT(small / 4, 0.0F);
}

TEST(Parallel, LoopsOfSeveralThreadsDoNotMeet) {
  std::vector<std::thread> owners;
  std::vector<int64_t> sums(4);
  for (int owner = 0; owner < 4; ++owner) {
    owners.emplace_back([owner, &sums] {
      std::vector<int64_t> parts(3);
      for (int loop = 0; loop < 300; ++loop) {
        parallel({3, 3}, [&](int part, int) { parts[static_cast<size_t>(part)] += owner; });
      }
      sums[static_cast<size_t>(owner)] = std::accumulate(parts.begin(), parts.end(), int64_t{0});
    });
  }
  for (std::thread& owner : owners) owner.join();
  EXPECT_EQ(sums, (std::vector<int64_t>{0, 900, 1800, 2700}));
}

std::set<std::thread::id> threads_of_loop(int team) {
  std::vector<std::thread::id> ids(static_cast<size_t>(team));
  parallel({team, team}, [&](int part, int) { ids[static_cast<size_t>(part)] = std::this_thread::get_id(); });
  return {ids.begin(), ids.end()};
}

TEST(Parallel, TheSameThreadsRunOneLoopAfterAnother) {
  const auto first = threads_of_loop(4);
  EXPECT_EQ(first.size(), 4U);
  (void)threads_of_loop(2);
  EXPECT_EQ(threads_of_loop(4), first);
  end_team();
  EXPECT_EQ(threads_of_loop(4).size(), 4U);
}

TEST(Parallel, LoopsFollowOpenMpUntilTheyLeaveIt) {
  const auto team = threads_of_loop(3);
  follow_openmp();
  const auto followers = threads_of_loop(3);
  EXPECT_NE(followers, team);
  for (int loop = 0; loop < 2'000; ++loop) ASSERT_EQ(threads_of_loop(3), followers) << "loop " << loop;
  leave_openmp();
  EXPECT_EQ(threads_of_loop(3), team);
}

#if !defined(__clang__)
TEST(Parallel, ThreadsOfOpenMpAreNotKeptToCoresThatWereLeft) {
  const int cores = available_cores();
  std::vector<int> seen(2);
  std::thread trainer([&] {  // whose OpenMP threads are not there yet
    {
      const KeptToCores kept(share_of_cores(0, cores));
      follow_openmp();
      EXPECT_EQ(runs_of({2, 2}), (std::vector<int>{1, 1}));
    }
    follow_openmp();
    parallel({2, 2}, [&](int part, int) { seen[static_cast<size_t>(part)] = available_cores(); });
  });
  trainer.join();
  EXPECT_EQ(seen, std::vector<int>(2, cores));
}
#endif

TEST(Team, SpinsAsTheVariablesOfOpenMpSayButNeverForEver) {
  const int64_t most = spins_of("infinite", nullptr);
  EXPECT_LT(most, 1'000'000);
  EXPECT_EQ(spins_of(nullptr, "active"), most);
  EXPECT_EQ(spins_of("30g", nullptr), most);
  EXPECT_EQ(spins_of("99999999999999999999", nullptr), most);
  EXPECT_EQ(spins_of(nullptr, "PASSIVE"), 0);
  EXPECT_EQ(spins_of("0", "active"), 0) << "the count wins";
  EXPECT_EQ(spins_of("700", nullptr), 700);
  EXPECT_EQ(spins_of("20k", nullptr), 20'000);
  EXPECT_EQ(spins_of(nullptr, nullptr), 4'000);
}

TEST(Shares, AreWholeAndBeginAtTheSameFraction) {
  for (const int parts : {1, 2, 3, 5, 12, 16, 64}) {
    for (const int64_t count : {0, 1, 7, 40, 112, 1000}) {
      int64_t end = 0;
      for (int part = 0; part < parts; ++part) {
        const Range mine = aligned_share(count, part, parts);
        EXPECT_EQ(mine.begin, end);
        EXPECT_LE(mine.size(), count / parts + 1);
        EXPECT_EQ(aligned_share(2 * count, part, parts).begin / 2, mine.begin);
        end = mine.end;
      }
      EXPECT_EQ(end, count);
    }
  }
}

}  // namespace
}  // namespace lockstep::base
