#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/cores.h"
#include "base/hash.h"
#include "base/host.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/suggest.h"

namespace lockstep::base {
namespace {

TEST(Share, CoversEverythingOnceAndEvenly) {
  for (const int64_t count : {0, 1, 7, 64, 1000}) {
    for (const int parts : {1, 2, 3, 8}) {
      int64_t next = 0;
      for (int part = 0; part < parts; ++part) {
        const Range range = share(count, part, parts);
        EXPECT_EQ(range.begin, next);
        EXPECT_LE(range.size(), (count + parts - 1) / parts);
        EXPECT_GE(range.size(), count / parts);
        next = range.end;
      }
      EXPECT_EQ(next, count);
    }
  }
}

/// Runs every part once; returns the threads that ran them.
std::set<pid_t> threads_that_run(Split split) {
  std::vector<pid_t> ran(static_cast<size_t>(split.parts));
  parallel(split, [&](int part, int parts) {
    EXPECT_EQ(parts, split.parts);
    EXPECT_EQ(ran[static_cast<size_t>(part)], 0) << "part " << part << " ran twice";
    ran[static_cast<size_t>(part)] = gettid();
  });
  EXPECT_EQ(std::count(ran.begin(), ran.end(), 0), 0);
  return {ran.begin(), ran.end()};
}

TEST(Parallel, LoopsWithFewerOrMorePartsRunOnTheSameThreads) {
  constexpr int kTeam = 4;
  const std::set<pid_t> team = threads_that_run({kTeam, kTeam});
  EXPECT_LE(team.size(), size_t{kTeam});
  for (const int parts : {2, 4, 3, 4, 1, 9, 2, 4}) {
    for (const pid_t thread : threads_that_run({parts, kTeam})) EXPECT_EQ(team.count(thread), 1U) << parts << " parts";
  }
}

TEST(Parallel, WithinALoopTheCallerRunsAllParts) {
  parallel({2, 2}, [](int /*part*/, int /*parts*/) { EXPECT_EQ(threads_that_run({3, 3}), std::set<pid_t>{gettid()}); });
}

TEST(Parallel, SmallLoopsHaveFewPartsForAWholeTeam) {
  for (const auto& [work, parts] : {std::pair{0, 1}, {99, 1}, {250, 2}, {10'000, 8}}) {
    const Split split = split_for(work, 100, 8);
    EXPECT_EQ(split.parts, parts) << work;
    EXPECT_EQ(split.team, 8);
  }
}

TEST(Cores, SharesAreOfThoseThatTheThreadHas) {
  std::vector<int> all;
  const int parts = available_cores();
  for (int part = 0; part < parts; ++part) {
    const std::vector<int> share = share_of_cores(part, parts);
    ASSERT_EQ(share.size(), 1U);
    all.push_back(share.front());
  }
  EXPECT_EQ(all, share_of_cores(0, 1));
}

TEST(Cores, AThreadIsKeptToThemForAWhileOnly) {
  const std::vector<int> all = share_of_cores(0, 1);
  {
    const KeptToCores kept({all.back()});
    EXPECT_EQ(share_of_cores(0, 1), std::vector<int>{all.back()});
    EXPECT_EQ(available_cores(), 1);
    std::vector<int> of_another;
    std::thread([&] { of_another = share_of_cores(0, 1); }).join();
    EXPECT_EQ(of_another, std::vector<int>{all.back()}) << "a thread that was started meanwhile";
  }
  EXPECT_EQ(share_of_cores(0, 1), all);
}

TEST(Cores, NoneMeansAll) {
  const std::vector<int> all = share_of_cores(0, 1);
  const KeptToCores kept({});
  EXPECT_EQ(share_of_cores(0, 1), all);
}

TEST(Sequence, DependsOnSeedStreamAndSubstream) {
  const auto first = [](uint64_t seed, uint64_t stream, uint64_t substream) {
    return Sequence(seed, stream, substream).next();
  };
  EXPECT_EQ(first(1, 2, 3), first(1, 2, 3));
  EXPECT_NE(first(1, 2, 3), first(2, 2, 3));
  EXPECT_NE(first(1, 2, 3), first(1, 3, 3));
  EXPECT_NE(first(1, 2, 3), first(1, 2, 4));
}

TEST(Sequence, BelowIsUniform) {
  Sequence random(1, 1);
  std::array<int, 7> seen{};
  for (int i = 0; i < 70'000; ++i) ++seen.at(random.below(7));
  for (const int count : seen) EXPECT_NEAR(count, 10'000, 500);
}

TEST(Suggest, NamesTheNearestOrAll) {
  const std::vector<std::string> allowed{"mnist", "fashion-mnist"};
  EXPECT_EQ(hint("mnits", allowed), " (did you mean 'mnist'?)");
  EXPECT_EQ(nearest("modle", std::vector<std::string>{"mode", "model"}), "model") << "two letters swapped";
  EXPECT_EQ(nearest("abcdef", std::vector<std::string>{"uvwdef", "badcxe"}), "") << "three changes or more are too far";
  EXPECT_EQ(hint("imagenet-1k", allowed), " (allowed: mnist, fashion-mnist)");
}

TEST(Host, HasANumberThatAFloatHolds) {
  const uint32_t number = machine_number();
  EXPECT_EQ(number, machine_number());
  EXPECT_LT(number, 1U << 24U);
}

TEST(Hash, ValuesStayAsTheyAreOnDisksAndBetweenVersions) {
  constexpr std::string_view kText = "job \xC3\xA9";
  EXPECT_EQ(hashed(kHashStart, kText), 16717273540792486164U);
  EXPECT_EQ(hashed(kDigestStart, kText), 6053546617878287050U);
  EXPECT_EQ(hashed32(kText), 394862260U);
}

}  // namespace
}  // namespace lockstep::base
