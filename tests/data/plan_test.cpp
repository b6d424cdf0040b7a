#include "data/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "base/temp_dir.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

using base::Range;
using lockstep::testing::message_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Number of times that each position of each pass has been seen.
using Seen = std::map<int64_t, std::vector<int>>;

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int64_t operator()(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(engine_);
  }

 private:
  std::mt19937 engine_;
};

void see(Seen& seen, int64_t pass, std::span<const Range> ranges, int64_t examples) {
  std::vector<int>& counts = seen.try_emplace(pass, static_cast<size_t>(examples)).first->second;
  for (const Range& range : ranges) {
    for (int64_t i = range.begin; i < range.end; ++i) ++counts.at(static_cast<size_t>(i));
  }
}

/// Returns the whole passes [first, last) of the stream, each position once.
Seen passes_once(int64_t first, int64_t last, int64_t examples) {
  Seen seen;
  for (int64_t pass = first; pass < last; ++pass) seen[pass] = std::vector<int>(static_cast<size_t>(examples), 1);
  return seen;
}

/// Adds all positions of a remainder before pass `last`.
void see(Seen& seen, const Remainder& left, int64_t last, int64_t examples) {
  for (const PassPart& part : left.parts) see(seen, part.pass, part.ranges, examples);
  const Range whole{0, examples};
  for (int64_t pass = left.next_pass; pass < last; ++pass) see(seen, pass, {&whole, 1}, examples);
}

Plan for_member(Plan plan, int member) {
  plan.shard.index = member;
  return plan;
}

/// Adds the positions that the members of a plan have applied.
void see_applied(Seen& seen, const Plan& plan, std::span<const int64_t> done) {
  for (int member = 0; member < plan.shard.count; ++member) {
    const Rounds rounds(for_member(plan, member));
    Round round;
    for (int64_t i = 0; i < done[static_cast<size_t>(member)]; ++i) {
      rounds.read(i, round);
      see(seen, round.pass, round.ranges, plan.examples);
    }
  }
}

Remainder random_remainder(Random& random, int64_t examples) {
  Remainder data;
  for (int64_t parts = random(0, 3); parts > 0; --parts) {
    PassPart part{data.next_pass + random(0, 2), {}};
    for (int64_t at = random(0, 5); at < examples; at += random(1, 9)) {
      const int64_t end = std::min(at + random(1, 20), examples);
      part.ranges.push_back({at, end});
      at = end;
    }
    if (part.ranges.empty()) continue;
    data.next_pass = part.pass + 1;
    data.parts.push_back(std::move(part));
  }
  data.next_pass += random(0, 2);
  return data;
}

Plan random_plan(Random& random, int64_t examples, const Remainder& data) {
  Plan plan;
  plan.data = data;
  plan.examples = examples;
  plan.shard.count = static_cast<int>(random(1, 7));
  plan.batch = random(1, std::min<int64_t>(examples, 16));
  return plan;
}

/// Returns counters that differ by little or by a lot, up to a few passes.
std::vector<int64_t> random_done(Random& random, const Plan& plan) {
  const int64_t most = plan.rounds_before(plan.data.next_pass + random(0, 3));
  const int64_t base = random(0, most);
  const int64_t spread = random(0, 1) == 0 ? 2 : most;
  std::vector<int64_t> done;
  for (int i = 0; i < plan.shard.count; ++i) done.push_back(std::min(base + random(0, spread), 2 * most));
  return done;
}

void expect_well_formed(const Remainder& left, int64_t examples) {
  Plan plan;
  plan.data = left;
  plan.examples = examples;
  EXPECT_NO_THROW(plan.check());
}

TEST(Plan, OneMemberTakesConsecutiveBatches) {
  const Plan plan{.batch = 4, .examples = 10};
  EXPECT_THAT(plan.round(0).ranges, ElementsAre(Range{0, 4}));
  EXPECT_THAT(plan.round(1).ranges, ElementsAre(Range{4, 8}));
  EXPECT_THAT(plan.round(2).ranges, ElementsAre(Range{8, 10}));
  EXPECT_THAT(plan.round(3).ranges, ElementsAre(Range{0, 4}));
  EXPECT_EQ(plan.round(2).pass, 0);
  EXPECT_EQ(plan.round(3).pass, 1);
  EXPECT_EQ(plan.round(4).index_in_part, 1);
  EXPECT_EQ(plan.round(4).rounds_in_part, 3);
}

TEST(Plan, MemberITakesSliceIOfTheConsecutivePositionsOfAWholePass) {
  for (const int64_t examples : {7, 64, 101, 1000}) {
    for (const int members : {1, 2, 3, 7}) {
      for (const int64_t batch : {1, 2, 5, 16}) {
        if (batch * members > examples) continue;
        const int64_t global = batch * members;
        for (int member = 0; member < members; ++member) {
          const Rounds rounds(Plan{.shard = {member, members}, .batch = batch, .examples = examples});
          Round round;
          for (int64_t i = 0; i < examples / global; ++i) {
            rounds.read(i, round);
            const int64_t begin = i * global + member * batch;
            ASSERT_THAT(round.ranges, ElementsAre(Range{begin, begin + batch}));
            ASSERT_EQ(round.first_row, member * batch);
            ASSERT_EQ(round.global_count, global);
            ASSERT_TRUE(round.whole_pass);
          }
        }
      }
    }
  }
}

TEST(Plan, SplitsTheShortLastRoundEvenlyAndSomeGetNothing) {
  std::vector<int64_t> sizes;
  for (int member = 0; member < 4; ++member) {
    const Round round = Plan{.shard = {member, 4}, .batch = 4, .examples = 18}.round(1);
    sizes.push_back(round.count);
    EXPECT_EQ(round.ranges.empty(), round.count == 0);
    EXPECT_EQ(round.global_count, 2);
  }
  EXPECT_THAT(sizes, ElementsAre(1, 1, 0, 0));
}

TEST(Plan, ARoundOfAPartGoesOverItsRangesLaidEndToEnd) {
  Plan plan{.shard = {0, 2}, .batch = 4, .examples = 100};
  plan.data = {{{3, {{10, 13}, {20, 22}, {50, 60}}}, {5, {{0, 2}}}}, 7};
  EXPECT_THAT(for_member(plan, 0).round(0).ranges, ElementsAre(Range{10, 13}, Range{20, 21}));
  EXPECT_THAT(for_member(plan, 1).round(0).ranges, ElementsAre(Range{21, 22}, Range{50, 53}));
  EXPECT_THAT(for_member(plan, 0).round(1).ranges, ElementsAre(Range{53, 57}));
  EXPECT_THAT(for_member(plan, 1).round(1).ranges, ElementsAre(Range{57, 60}));
  EXPECT_EQ(for_member(plan, 1).round(1).first_row, 4);
  EXPECT_EQ(plan.round(1).global_count, 7);
  EXPECT_EQ(plan.round(1).rounds_in_part, 2);
  EXPECT_EQ(plan.round(2).pass, 5);
  EXPECT_EQ(plan.round(3).pass, 7);
  EXPECT_TRUE(plan.round(3).whole_pass);
  EXPECT_EQ(plan.rounds_before(3), 0);
  EXPECT_EQ(plan.rounds_before(4), 2);
  EXPECT_EQ(plan.rounds_before(7), 3);
  EXPECT_EQ(plan.rounds_before(9), 3 + 2 * 13);
  EXPECT_GT(plan.rounds_before(std::numeric_limits<int64_t>::max()), int64_t{1} << 60);
}

TEST(Plan, RoundsAreNumberedSoThatAPassBeginsWhereRoundsBeforeSays) {
  Random random(1);
  for (int turn = 0; turn < 300; ++turn) {
    const int64_t examples = random(1, 120);
    const Plan plan = random_plan(random, examples, random_remainder(random, examples));
    for (int64_t pass = 0; pass < plan.data.next_pass + 3; ++pass) {
      const int64_t first = plan.rounds_before(pass);
      EXPECT_GE(plan.round(first).pass, pass);
      EXPECT_EQ(plan.round(first).index_in_part, 0);
      if (first > 0) {
        EXPECT_LT(plan.round(first - 1).pass, pass);
      }
    }
  }
}

TEST(Unapplied, IsThePlansDataWhenNothingIsDone) {
  Random random(2);
  for (int turn = 0; turn < 300; ++turn) {
    const int64_t examples = random(1, 120);
    const Plan plan = random_plan(random, examples, random_remainder(random, examples));
    EXPECT_EQ(unapplied(plan, std::vector<int64_t>(static_cast<size_t>(plan.shard.count))), plan.data);
  }
}

TEST(Unapplied, AndAppliedAreEverythingOnce) {
  Random random(3);
  for (int turn = 0; turn < 3000; ++turn) {
    const int64_t examples = random(1, 120);
    const Plan plan = random_plan(random, examples, random_remainder(random, examples));
    const std::vector<int64_t> done = random_done(random, plan);
    const Remainder left = unapplied(plan, done);
    expect_well_formed(left, examples);
    const int64_t last = left.next_pass + 1;
    Seen together;
    see_applied(together, plan, done);
    see(together, left, last, examples);
    Seen all;
    see(all, plan.data, last, examples);
    ASSERT_EQ(together, all) << "turn " << turn;
  }
}

TEST(Unapplied, MergesWhatTouchesAndLeavesOutWhatIsDone) {
  Plan plan{.shard = {0, 2}, .batch = 5, .examples = 30};
  EXPECT_EQ(unapplied(plan, std::vector<int64_t>{1, 1}), (Remainder{{{0, {{10, 30}}}}, 1}));
  EXPECT_EQ(unapplied(plan, std::vector<int64_t>{2, 0}), (Remainder{{{0, {{5, 10}, {15, 30}}}}, 1}));
  EXPECT_EQ(unapplied(plan, std::vector<int64_t>{0, 1}), (Remainder{{{0, {{0, 5}, {10, 30}}}}, 1}));
  EXPECT_EQ(unapplied(plan, std::vector<int64_t>{3, 3}), (Remainder{{}, 1}));
  EXPECT_EQ(unapplied(plan, std::vector<int64_t>{4, 2}), (Remainder{{{0, {{25, 30}}}, {1, {{5, 30}}}}, 2}));
  EXPECT_EQ(unapplied(plan, std::vector<int64_t>{3000, 3001}), (Remainder{{{1000, {{0, 5}, {10, 30}}}}, 1001}));
  plan.data = {{{2, {{0, 3}, {7, 9}}}, {3, {{1, 2}}}}, 4};
  EXPECT_EQ(unapplied(plan, std::vector<int64_t>{1, 0}), (Remainder{{{2, {{7, 9}}}, {3, {{1, 2}}}}, 4}));
  EXPECT_EQ(unapplied(plan, std::vector<int64_t>{2, 2}), (Remainder{{}, 4}));
  EXPECT_EQ(unapplied(plan, std::vector<int64_t>{5, 1}), (Remainder{{{4, {{5, 10}, {15, 20}, {25, 30}}}}, 5}));
}

TEST(Unapplied, ChainedPlansOfChangingMembersSeeEachPositionOnce) {
  Random random(4);
  for (int turn = 0; turn < 300; ++turn) {
    const int64_t examples = random(1, 90);
    Remainder left;
    Seen seen;
    for (int64_t change = random(1, 12); change > 0; --change) {
      const Plan plan = random_plan(random, examples, left);
      const std::vector<int64_t> done = random_done(random, plan);
      see_applied(seen, plan, done);
      left = unapplied(plan, done);
    }
    expect_well_formed(left, examples);
    see(seen, left, left.next_pass, examples);
    ASSERT_EQ(seen, passes_once(0, left.next_pass, examples)) << "turn " << turn;
  }
}

TEST(Unapplied, ManyRangesStayCheap) {
  Plan plan{.shard = {0, 2}, .batch = 1, .examples = 1'000'000};
  plan.data = unapplied(plan, std::vector<int64_t>{500'000, 0});
  ASSERT_EQ(plan.data.parts.front().ranges.size(), 500'000U);
  const Rounds rounds(plan);
  Round round;
  int64_t sum = 0;
  for (int64_t i = 0; i < 250'000; ++i) {
    rounds.read(i, round);
    sum += round.ranges.front().begin;
  }
  EXPECT_EQ(sum, 250'000 * int64_t{250'000} * 2 - 250'000);
}

TEST(Remainder, AfterSomeBatchesOfAPass) {
  EXPECT_EQ(remainder_after(3, 0, 4, 10), (Remainder{{}, 3}));
  EXPECT_EQ(remainder_after(3, 2, 4, 10), (Remainder{{{3, {{8, 10}}}}, 4}));
  EXPECT_EQ(remainder_after(3, 3, 4, 10), (Remainder{{}, 4}));
  for (int64_t batches = 0; batches < 40; ++batches) {
    const Plan plan{.batch = 4, .examples = 10};
    EXPECT_EQ(unapplied(plan, {&batches, 1}), remainder_after(batches / 3, batches % 3, 4, 10));
  }
}

TEST(Plan, RefusesWhatMakesNoSense) {
  const auto error = [](Plan plan) { return message_of<UsageError>([&] { plan.check(); }); };
  const auto of_data = [&](Remainder data) { return error(Plan{.data = std::move(data), .examples = 50}); };
  EXPECT_EQ(error({.batch = 128, .examples = 100}), "batch 128 is larger than the data set of 100 examples");
  EXPECT_EQ(error({.batch = 0, .examples = 100}), "batch 0; at least 1 is allowed");
  EXPECT_EQ(error({.examples = 0}), "the data set is empty: no batch can be made");
  EXPECT_EQ(error({.shard = {2, 2}, .examples = 100}), "shard 2 of 2: the index must be 0 to 1");
  EXPECT_THAT(error({.examples = int64_t{1} << 40}), HasSubstr("examples; at most"));
  EXPECT_THAT(error({.examples = 100, .rounds_done = -1}), HasSubstr("-1 rounds done"));
  EXPECT_EQ(of_data({{{0, {{40, 51}}}}, 1}),
            "plan: positions 40 to 51 of pass 0; ascending ranges of 0 to 50 are allowed");
  EXPECT_THAT(of_data({{{0, {{5, 5}}}}, 1}), HasSubstr("positions 5 to 5"));
  EXPECT_THAT(of_data({{{0, {{-1, 5}}}}, 1}), HasSubstr("positions -1 to 5"));
  EXPECT_THAT(of_data({{{0, {{0, 5}, {5, 9}}}}, 1}), HasSubstr("positions 5 to 9"));
  EXPECT_THAT(of_data({{{0, {}}}, 1}), HasSubstr("0 ranges of pass 0"));
  EXPECT_THAT(of_data({{{1, {{0, 5}}}}, 1}), HasSubstr("parts of passes 0 to 0"));
  EXPECT_THAT(of_data({{{1, {{0, 5}}}, {1, {{0, 5}}}}, 2}), HasSubstr("ranges of pass 1; parts of passes 2 to 1"));
  EXPECT_THAT(of_data({{}, -1}), HasSubstr("next pass -1"));
  EXPECT_EQ(message_of<UsageError>([] {
              unapplied(Plan{.examples = 5}, std::vector<int64_t>{1, 2});
            }),
            "a plan of 1 members: 1 counters, all 0 or more, are needed, got 1, 2");
  EXPECT_THAT(message_of<UsageError>([] { unapplied(Plan{.examples = 5}, std::vector<int64_t>{-1}); }),
              HasSubstr("got -1"));
}

TEST(Plan, MoreMembersThanAPassHasExamplesShareItsOnlyRound) {
  for (int member = 0; member < 9; ++member) {
    const Round round = Plan{.shard = {member, 9}, .batch = 4, .examples = 5}.round(7);
    EXPECT_EQ(round.pass, 7);
    EXPECT_EQ(round.count, member < 5 ? 1 : 0);
    EXPECT_EQ(round.ranges.empty(), member >= 5);
  }
}

TEST(CheckBatch, NamesBatchWorkersAndData) {
  const auto error = [](int64_t examples, int64_t batch, int workers) {
    return message_of<UsageError>([&] { check_batch(examples, batch, workers); });
  };
  EXPECT_EQ(error(100, 30, 4), "batch 30 times 4 workers = 120 is larger than the data set of 100 examples");
  EXPECT_EQ(error(1, 2, 1), "batch 2 is larger than the data set of 1 example");
  EXPECT_NO_THROW(check_batch(100, 25, 4));
}

}  // namespace
}  // namespace lockstep::data
