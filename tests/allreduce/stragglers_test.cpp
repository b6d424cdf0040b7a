#include "allreduce/stragglers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

namespace lockstep::allreduce {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

/// A simulated group: all compute, wait for the last one, then exchange.
class Group {
 public:
  explicit Group(size_t size, double noise = 0.05) : own_(size), noise_(noise), stragglers_(names(size)) {
    std::vector<int> members;
    for (size_t i = 0; i < size; ++i) {
      own_[i] = {0.001, 0.05, 0};
      members.push_back(static_cast<int>(i));
    }
    stragglers_.restart(members);
  }

  MemberTimes& operator[](size_t member) { return own_[member]; }
  double exchange = 0.01;

  /// Returns the log lines of these steps.
  std::vector<std::string> train(int steps) {
    std::vector<std::string> said;
    for (int i = 0; i < steps; ++i) {
      std::vector<MemberTimes> times = own_;
      double last = 0;
      for (MemberTimes& member : times) {
        member.load *= varied();
        member.compute *= varied();
        last = std::max(last, member.load + member.compute);
      }
      const double transfer = exchange * varied();
      for (MemberTimes& member : times) member.wait = last - member.load - member.compute + transfer;
      now_ += last + transfer;
      for (const StragglerEvent& event : stragglers_.step(++step_, now_, times)) said.push_back(event.text);
    }
    return said;
  }
  Stragglers& stragglers() { return stragglers_; }

 private:
  static std::vector<std::string> names(size_t size) {
    std::vector<std::string> all;
    for (size_t i = 0; i < size; ++i) all.push_back("worker:" + std::to_string(i));
    return all;
  }
  double varied() { return 1 + noise_ * (2 * std::uniform_real_distribution<double>()(random_) - 1); }

  std::vector<MemberTimes> own_;
  double noise_;
  Stragglers stragglers_;
  std::mt19937 random_{1};
  double now_ = 0;
  uint64_t step_ = 0;
};

TEST(Stragglers, AMemberThatComputesLongerIsNamedWithSinceWhenAndHowMuch) {
  Group group(4);
  EXPECT_THAT(group.train(200), IsEmpty());
  group[2].compute = 0.155;
  EXPECT_THAT(
      group.train(200),
      ElementsAre(MatchesRegex("worker:2 is slow since step 20[0-9]: it computes [23]\\.[0-9] times as long as the "
                               "median of the others \\(.* ms a step, they .* ms\\)")));
  const StragglerReport report = group.stragglers().report();
  ASSERT_EQ(report.episodes.size(), 1);
  EXPECT_EQ(report.episodes[0].member, 2);
  EXPECT_EQ(report.episodes[0].why, Slowness::computing);
  EXPECT_FALSE(report.episodes[0].over);
  EXPECT_NEAR(report.episodes[0].factor, 3.06, 0.1);
  ASSERT_EQ(report.members.size(), 4);
  EXPECT_GT(report.members[2].last_share, 0.5);
  EXPECT_NEAR(report.members[2].mean.compute, 0.1025, 0.002);
}

TEST(Stragglers, OfTwoTheSlowerOneIsNamed) {
  Group group(2);
  group[0].compute = 0.1;
  EXPECT_THAT(group.train(200), ElementsAre(StartsWith("worker:0 is slow since step ")));
}

TEST(Stragglers, AMemberThatWaitsForDataIsToldFromOneThatComputes) {
  Group group(3);
  group.train(100);
  group[1].load = 0.04;
  EXPECT_THAT(group.train(200),
              ElementsAre(MatchesRegex("worker:1 is slow since step 1[0-9]*: it loads data .* times as "
                                       "long as the median of the others .*")));
  EXPECT_EQ(group.stragglers().report().episodes[0].why, Slowness::loading);
}

TEST(Stragglers, ASlowNetworkIsNobodysFault) {
  Group group(3);
  EXPECT_THAT(group.train(100), IsEmpty());
  group.exchange = 0.06;
  EXPECT_THAT(group.train(200),
              ElementsAre(MatchesRegex("the network is slow since step 1[0-9]*: the exchange takes .* "
                                       "times its first time .*")));
  group.exchange = 0.01;
  EXPECT_THAT(group.train(200), ElementsAre(StartsWith("the network is as fast as at first again after ")));
}

TEST(Stragglers, WhatDoesNotMatterForTheStepIsNotSaid) {
  Group group(3);
  group.exchange = 2;
  group[1].compute = 0.1;  // twice as long, but the exchange takes twenty times that
  EXPECT_THAT(group.train(200), IsEmpty());
}

TEST(Stragglers, ANoisyButFairGroupIsLeftInPeace) {
  for (const size_t size : {2, 3, 4, 8}) {
    Group group(size, 0.6);
    EXPECT_THAT(group.train(5000), IsEmpty()) << size;
    for (const MemberPace& pace : group.stragglers().report().members) {
      EXPECT_NEAR(pace.last_share, 1.0 / static_cast<double>(size), 0.1);
    }
    EXPECT_THAT(group.stragglers().report().lines(), IsEmpty());
  }
}

TEST(Stragglers, SingleLongStepsAreNoSlowness) {
  // Rank 0 evaluates now and then, for a hundred times as long as a step.
  Group group(3);
  std::vector<std::string> said;
  for (int i = 0; i < 50; ++i) {
    for (const auto& text : group.train(60)) said.push_back(text);
    group[0].compute = 20;
    for (const auto& text : group.train(1)) said.push_back(text);
    group[0].compute = 0.05;
  }
  EXPECT_THAT(said, IsEmpty());
}

TEST(Stragglers, RecoveryIsSaidWithHowLongItTook) {
  Group group(3);
  group.train(100);
  group[2].compute = 0.2;
  ASSERT_EQ(group.train(60).size(), 1);
  group[2].compute = 0.05;
  EXPECT_THAT(group.train(200), ElementsAre(MatchesRegex("worker:2 is as fast as the others again after 1[0-9.]* s")));
  const StragglerReport report = group.stragglers().report();
  ASSERT_EQ(report.episodes.size(), 1);
  EXPECT_TRUE(report.episodes[0].over);
  EXPECT_NEAR(report.episodes[0].seconds, 60 * 0.21, 3);
  const std::vector<std::string> lines = report.lines();
  ASSERT_EQ(lines.size(), 4);
  EXPECT_THAT(lines[0], HasSubstr("worker:2 was slow from step 10"));
  EXPECT_THAT(lines[1], StartsWith("worker:0: the last in "));
}

TEST(Stragglers, AFlutteringMemberIsNotAnnouncedAgainAndAgain) {
  Group group(3);
  std::vector<std::string> said;
  for (int i = 0; i < 100; ++i) {
    group[1].compute = i % 2 == 0 ? 0.06 : 0.09;
    for (const auto& text : group.train(10)) said.push_back(text);
  }
  EXPECT_LE(said.size(), 1);
}

TEST(Stragglers, ANewGroupBeginsAnew) {
  Group group(3);
  group.train(100);
  group[2].compute = 0.2;
  group.train(100);
  group.stragglers().restart({0, 1, 2});
  EXPECT_TRUE(group.stragglers().report().episodes[0].over);
  EXPECT_THAT(group.train(100), ElementsAre(StartsWith("worker:2 is slow since step 20")));
}

TEST(Stragglers, OneMemberAloneIsNeverSlow) {
  Group group(1);
  EXPECT_THAT(group.train(100), IsEmpty());
  EXPECT_EQ(group.stragglers().report().members[0].last_share, 1);
}

}  // namespace
}  // namespace lockstep::allreduce
