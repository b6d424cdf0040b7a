#include "report/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "made_results.h"
#include "records/run_folders.h"
#include "report/checks.h"

namespace lockstep::report {
namespace {

using lab::TestKind;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using FindingTest = testing::MadeTest;
using testing::made_results;
using testing::MadeRun;
using testing::repeated;
using testing::where;

/// Makes a run with this number of nodes and time of an epoch.
MadeRun nodes(int count, double epoch_seconds, int repeat = 1) {
  return {.label = fmt::format("{} nodes", count),
          .tags = {{"nodes", std::to_string(count)}},
          .values = {{"epoch_seconds", epoch_seconds}, {"share_compute", 1.0 / count}},
          .repeat = repeat};
}

MadeRun mode_batch(const std::string& mode, int batch, double seconds) {
  return {.varied = {{"mode", mode}, {"batch", std::to_string(batch)}}, .values = {{"seconds", seconds}}};
}

Finding check(lab::Results& results, const std::vector<FindingTest>& tests, std::vector<std::string> explain = {}) {
  results.experiment.report.findings = {{"f", "It is so.", {tests.begin(), tests.end()}, std::move(explain)}};
  return check_findings(results).front();
}

FindingTest ratio(double at_most) {
  return {.kind = TestKind::ratio,
          .field = "epoch_seconds",
          .first = where({{"nodes", {"3"}}}),
          .second = where({{"nodes", {"1"}}}),
          .at_most = at_most};
}

FindingTest compare(const std::string& is, double within = 0.05) {
  return {.kind = TestKind::compare,
          .field = "seconds",
          .first = where({{"mode", {"sync"}}}),
          .second = where({{"mode", {"async"}}}),
          .by = {"batch"},
          .is = is,
          .within = within};
}

MadeRun disturbed(MadeRun run) {
  run.values["others_share"] = 0.4;
  run.values["disturbed"] = 1;
  return run;
}

FindingTest trend(const std::string& is, double within = 0.05) {
  return {.kind = TestKind::trend, .field = "epoch_seconds", .over = "nodes", .is = is, .within = within};
}

TEST(Ratio, HoldsWithItsNumbersInTheSentence) {
  lab::Results results = repeated({nodes(1, 3.74), nodes(3, 1.42)});
  const Finding finding = check(results, {ratio(0.42)});
  EXPECT_EQ(finding.verdict, Verdict::holds);
  EXPECT_EQ(finding.sentences.at(0),
            "Time of an epoch, nodes 3 against nodes 1: 0.38 of that with nodes 1 (1.42 s against "
            "3.74 s), at most 0.42: holds.");
}

TEST(Ratio, TakesTheMeanOfRepeats) {
  lab::Results results = repeated({nodes(1, 3, 1), nodes(1, 5, 2), nodes(3, 1, 1), nodes(3, 3, 2)});
  EXPECT_THAT(check(results, {ratio(0.6)}).sentences.at(0),
              HasSubstr("0.50 of that with nodes 1 (2.00 s against 4.00 s)"));
  EXPECT_EQ(check(results, {ratio(0.49)}).verdict, Verdict::fails);
}

TEST(Ratio, AboveOneIsATimes) {
  lab::Results results = repeated({nodes(1, 1), nodes(3, 2.5)});
  EXPECT_THAT(check(results, {ratio(3)}).sentences.at(0), HasSubstr("2.50 times that with nodes 1 (2.50 s"));
}

TEST(Ratio, SaysWhichRunsAreMissing) {
  lab::Results results = repeated({nodes(3, 1.42)});
  results.runs.push_back(testing::made_run(nodes(1, 0)));
  results.runs.back().state = lab::RunState::failed;
  const Finding finding = check(results, {ratio(0.42)});
  EXPECT_EQ(finding.verdict, Verdict::unjudged);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("the run with nodes 1 failed: not judged."));
  EXPECT_THAT(finding.reasons, IsEmpty());
}

TEST(Ratio, SaysThatAFigureWasNotRecorded) {
  lab::Results results = repeated({nodes(1, 2), nodes(3, 1)});
  FindingTest test = ratio(1);
  test.field = "ps_memory";
  const Finding finding = check(results, {test});
  EXPECT_EQ(finding.verdict, Verdict::unjudged);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("no memory of the server on the first side"));
}

TEST(Disturbed, RunsAreLeftOutOfVerdictsAndSaidToBe) {
  lab::Results results = repeated({nodes(1, 4), nodes(3, 1)});
  results.runs.push_back(testing::made_run(disturbed(nodes(3, 90, 4))));
  results.runs.push_back(testing::made_run(nodes(1, 4, 4)));
  const Finding finding = check(results, {ratio(0.5)});
  EXPECT_EQ(finding.verdict, Verdict::holds);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("(1.00 s against 4.00 s)"));
  EXPECT_EQ(finding.sentences.back(), "1 disturbed run is left out.");
}

TEST(Disturbed, RunsCountIfThereIsNoOtherAndTheFindingSaysSo) {
  lab::Results results = repeated({nodes(1, 4), disturbed(nodes(3, 1))});
  const Finding finding = check(results, {ratio(0.5)});
  EXPECT_EQ(finding.verdict, Verdict::holds);
  EXPECT_EQ(finding.sentences.back(),
            "3 disturbed runs count, as there is no other: other programs used 40 % of the machine.");
}

TEST(Disturbed, RunsKeepWhatTimeCannotChange) {
  MadeRun calm = {.label = "x", .varied = {{"mode", "sync"}}, .values = {{"accuracy", 0.9}}};
  MadeRun loud = disturbed(calm);
  loud.values["accuracy"] = 0.8;
  loud.repeat = 2;
  const lab::Results sync = made_results({calm, loud});
  EXPECT_EQ(undisturbed(Material(sync).observations({}), "accuracy").size(), 2U);
  EXPECT_EQ(undisturbed(Material(sync).observations({}), "seconds").size(), 1U);
  calm.varied = loud.varied = {{"mode", "async"}};
  const lab::Results async = made_results({calm, loud});
  EXPECT_EQ(undisturbed(Material(async).observations({}), "accuracy").size(), 1U) << "others decide who is late";
}

TEST(Compare, MatchesCasesByTheirFields) {
  lab::Results results = repeated({mode_batch("sync", 32, 2), mode_batch("async", 32, 4), mode_batch("sync", 64, 3),
                                   mode_batch("async", 64, 1), mode_batch("sync", 128, 1)});
  const Finding finding = check(results, {compare("less")});
  EXPECT_EQ(finding.verdict, Verdict::partly);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("batch 32: 2.00 s against 4.00 s (-50 %)"));
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("holds in 1 of 2 cases, does not hold in 1."));
}

TEST(Compare, CountsADifferenceWithinTheLimitAsNone) {
  lab::Results results = repeated({mode_batch("sync", 32, 1.00), mode_batch("async", 32, 1.04)});
  EXPECT_EQ(check(results, {compare("same")}).verdict, Verdict::holds);
  EXPECT_EQ(check(results, {compare("less")}).verdict, Verdict::fails);
  EXPECT_EQ(check(results, {compare("different")}).verdict, Verdict::fails);
  EXPECT_EQ(check(results, {compare("less", 0.01)}).verdict, Verdict::holds);
  EXPECT_EQ(check(results, {compare("greater", 0.01)}).verdict, Verdict::fails);
  EXPECT_EQ(check(results, {compare("different", 0.01)}).verdict, Verdict::holds);
}

TEST(Compare, LimitsTheDifferenceThatItPrints) {
  lab::Results results = repeated({mode_batch("sync", 32, 400), mode_batch("async", 32, 301)});
  const Finding finding = check(results, {compare("same", 0.25)});
  EXPECT_EQ(finding.verdict, Verdict::fails);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("(+33 %), should be the same within 25 %: does not hold."));
}

TEST(Compare, LimitsSharesInPoints) {
  lab::Results results = repeated({mode_batch("sync", 32, 1), mode_batch("async", 32, 1)});
  for (size_t i = 0; i < 6; ++i) results.runs[i].measured.values["accuracy"] = i < 3 ? 0.20 : 0.22;
  FindingTest test = compare("same", 0.03);
  test.field = "accuracy";
  const Finding finding = check(results, {test});
  EXPECT_EQ(finding.verdict, Verdict::holds);  // though it is 9 % less
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("(-2.00 points), should be the same within 3 points: holds."));
}

TEST(Compare, SaysManyTimesRatherThanPercent) {
  lab::Results results = repeated({mode_batch("sync", 32, 70e-6), mode_batch("async", 32, 94.5e-3)});
  EXPECT_THAT(check(results, {compare("less")}).sentences.at(0),
              HasSubstr("70.0 µs against 94.5 ms (1,350 times less)"));
}

TEST(Compare, PassesOverWhatIsUnknownAndSaysSo) {
  lab::Results results = repeated(
      {mode_batch("sync", 32, 1), mode_batch("async", 32, 4), mode_batch("sync", 64, 1), mode_batch("async", 64, 4)});
  for (size_t i = 9; i < 12; ++i) results.runs[i].measured.values.clear();
  const Finding finding = check(results, {compare("less")});
  EXPECT_EQ(finding.verdict, Verdict::holds);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr(": holds, not judged in 1 more case."));
}

TEST(Compare, FindsNoPairWithoutCommonCases) {
  lab::Results results = repeated({mode_batch("sync", 32, 1), mode_batch("async", 64, 1)});
  const Finding finding = check(results, {compare("same")});
  EXPECT_EQ(finding.verdict, Verdict::unjudged);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("no two runs have the same batch"));
}

/// Makes repeats of a run, one for each time.
std::vector<MadeRun> times(const std::string& mode, const std::vector<double>& seconds) {
  std::vector<MadeRun> runs;
  for (const double each : seconds) {
    runs.push_back(mode_batch(mode, 32, each));
    runs.back().repeat = static_cast<int>(runs.size());
  }
  return runs;
}

lab::Results sync_and_async(const std::vector<double>& sync, const std::vector<double>& async) {
  std::vector<MadeRun> all = times("sync", sync);
  for (const MadeRun& run : times("async", async)) all.push_back(run);
  return made_results(all);
}

TEST(Compare, OneRunDecidesNothingThatVaries) {
  lab::Results results = made_results({mode_batch("sync", 32, 1), mode_batch("async", 32, 4)});
  const Finding finding = check(results, {compare("less")});
  EXPECT_EQ(finding.verdict, Verdict::unjudged);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("(-75 %), one run, no interval, should be less"));
  EXPECT_THAT(finding.sentences.at(0), EndsWith(": not judged."));
}

TEST(Compare, OneRunDecidesWhatIsCounted) {
  lab::Results results = made_results({mode_batch("sync", 32, 1), mode_batch("async", 32, 4)});
  results.runs[0].measured.values["network_per_step"] = 1e6;
  results.runs[1].measured.values["network_per_step"] = 2e6;
  FindingTest test = compare("less");
  test.field = "network_per_step";
  EXPECT_EQ(check(results, {test}).verdict, Verdict::holds);
}

TEST(Compare, StepsToALossAreNotCountedInAdvance) {
  lab::Results results = made_results({mode_batch("sync", 32, 1), mode_batch("async", 32, 4)});
  for (lab::RunResult& run : results.runs) {
    run.measured.values["steps"] = run.number("seconds") * 100;
    run.plan.settings.emplace_back("stop-loss", "0.35");
  }
  FindingTest test = compare("less");
  test.field = "steps";
  EXPECT_EQ(check(results, {test}).verdict, Verdict::unjudged);
}

TEST(Compare, IsDecidedByPairsOfTheSameSeed) {
  // Each pair differs by 10 %, though the seeds differ by more: scipy's Welch test has p = 0.81, the paired one 0.0016.
  lab::Results results = sync_and_async({0.9, 1.8, 2.7, 3.6}, {1.0, 2.0, 3.0, 4.0});
  const Finding finding = check(results, {compare("less")});
  EXPECT_EQ(finding.verdict, Verdict::holds);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("2.25 s against 2.50 s (-10 %)"));
}

TEST(Compare, IsWithinNoiseWhereRepeatsScatter) {
  lab::Results results = sync_and_async({0.8, 1.3, 1.0}, {1.2, 1.1, 1.3});
  const Finding finding = check(results, {compare("less")});
  EXPECT_EQ(finding.verdict, Verdict::noise);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("repeats would decide it"));
  EXPECT_THAT(finding.sentences.at(0), EndsWith(": within noise."));
}

TEST(Verdicts, CountDecidedCases) {
  using enum Verdict;
  EXPECT_EQ(verdict_of({holds, holds, noise}), holds);
  EXPECT_EQ(verdict_of({holds, fails, noise}), partly);
  EXPECT_EQ(verdict_of({holds, noise, noise}), noise);  // most cases are undecided
  EXPECT_EQ(verdict_of({fails, unjudged}), fails);
  EXPECT_EQ(verdict_of({noise, unjudged}), noise);
  EXPECT_EQ(verdict_of({unjudged, unjudged}), unjudged);
}

// Batches decided as wanted in two cases of three; the third scatters.
TEST(Verdicts, SayHowManyCasesAreDecided) {
  std::vector<MadeRun> runs;
  for (const int batch : {32, 64, 128}) {
    for (const int repeat : {1, 2, 3}) {
      const double noise = batch == 128 ? 5 * (repeat - 2) : 0.01 * repeat;
      runs.push_back(mode_batch("sync", batch, 10 + noise));
      runs.push_back(mode_batch("async", batch, batch == 128 ? 11 - noise : 20));
      for (MadeRun* run : {&runs[runs.size() - 2], &runs.back()}) run->repeat = repeat;
    }
  }
  lab::Results results = made_results(runs);
  Finding finding = check(results, {compare("less")});
  EXPECT_EQ(finding.verdict, Verdict::holds);
  EXPECT_EQ(verdict_text(finding), "holds (2 of 3 cases decided)");
  EXPECT_EQ(verdict_text(check(results, {compare("greater")})), "does not hold (2 of 3 cases decided)");
  FindingTest unknown = compare("less");
  unknown.field = "ps_memory";
  EXPECT_EQ(verdict_text(check(results, {compare("less"), unknown})), "holds (2 of 6 cases decided)");
  std::erase_if(results.runs, [](const lab::RunResult& run) { return run.text("batch") == "128"; });
  finding = check(results, {compare("less")});
  EXPECT_EQ(verdict_text(finding), "holds");
  EXPECT_EQ(finding.cases, 2U);
}

TEST(Findings, AreNotJudgedByTheTestThatOneRunDecides) {
  lab::Results results = made_results({mode_batch("sync", 32, 1), mode_batch("async", 32, 4)});
  results.runs[0].measured.values["network_per_step"] = 1e6;
  results.runs[1].measured.values["network_per_step"] = 2e6;
  FindingTest bytes = compare("less");
  bytes.field = "network_per_step";
  EXPECT_EQ(check(results, {bytes, compare("less")}).verdict, Verdict::unjudged);
  EXPECT_EQ(check(results, {bytes, compare("greater")}).verdict, Verdict::unjudged);
}

FindingTest slope(double at_least, double at_most) {
  return {.kind = TestKind::slope, .field = "epoch_seconds", .over = "nodes", .at_least = at_least, .at_most = at_most};
}

TEST(Slope, OfMinusOneIsInverseProportion) {
  lab::Results results = repeated({nodes(1, 8), nodes(2, 4), nodes(8, 1)});
  const Finding finding = check(results, {slope(-1.1, -0.9)});
  EXPECT_EQ(finding.verdict, Verdict::holds);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("8.00 s at 1, 4.00 s at 2, 1.00 s at 8 (slope -1.00), the slope"));
  results = repeated({nodes(1, 8), nodes(2, 7), nodes(8, 6)});  // falls, but not in proportion
  EXPECT_EQ(check(results, {slope(-1.1, -0.9)}).verdict, Verdict::fails);
  results = made_results({nodes(1, 8), nodes(2, 4), nodes(8, 1)});
  EXPECT_EQ(check(results, {slope(-1.1, -0.9)}).verdict, Verdict::unjudged);
}

TEST(Trend, SeesWhatGrowsAndFalls) {
  lab::Results results = repeated({nodes(10, 1), nodes(1, 4), nodes(2, 2)});  // sorted as numbers
  EXPECT_EQ(check(results, {trend("falls")}).verdict, Verdict::holds);
  EXPECT_EQ(check(results, {trend("grows")}).verdict, Verdict::fails);
  EXPECT_EQ(check(results, {trend("flat")}).verdict, Verdict::fails);
  EXPECT_THAT(check(results, {trend("falls")}).sentences.at(0), HasSubstr("4.00 s at 1, 2.00 s at 2, 1.00 s at 10"));
}

TEST(Trend, ThatTurnsBackHoldsPartly) {
  lab::Results results = repeated({nodes(1, 4), nodes(2, 1), nodes(3, 2)});
  EXPECT_EQ(check(results, {trend("falls")}).verdict, Verdict::partly);
}

TEST(Trend, FromNothingHasNoInterval) {
  lab::Results results = made_results(
      {nodes(1, 0, 1), nodes(1, 0, 2), nodes(1, 0, 3), nodes(3, 1.1, 1), nodes(3, 1.2, 2), nodes(3, 1.3, 3)});
  const Finding finding = check(results, {trend("grows")});
  EXPECT_EQ(finding.verdict, Verdict::holds);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("(from nothing), should grow"));
}

TEST(Trend, IsFlatWithinTheLimit) {
  lab::Results results = repeated({nodes(1, 1.00), nodes(2, 1.03), nodes(3, 0.99)});
  EXPECT_EQ(check(results, {trend("flat")}).verdict, Verdict::holds);
  EXPECT_EQ(check(results, {trend("flat", 0.02)}).verdict, Verdict::fails);
  EXPECT_THAT(check(results, {trend("flat")}).sentences.at(0), HasSubstr("(the highest +4.0 % against the lowest)"));
  EXPECT_EQ(check(results, {trend("grows")}).verdict, Verdict::fails);
}

TEST(Trend, SaturatesWhereGrowthSlows) {
  lab::Results results = repeated({nodes(1, 14), nodes(2, 27), nodes(3, 41), nodes(4, 42)});
  EXPECT_EQ(check(results, {trend("saturates")}).verdict, Verdict::holds);
  results = repeated({nodes(1, 14), nodes(2, 27), nodes(3, 41)});
  EXPECT_EQ(check(results, {trend("saturates")}).verdict, Verdict::fails);
  results = repeated({nodes(1, 10), nodes(2, 40), nodes(3, 20)});
  EXPECT_EQ(check(results, {trend("saturates")}).verdict, Verdict::fails);
  results = repeated({nodes(1, 14), nodes(2, 27)});
  EXPECT_EQ(check(results, {trend("saturates")}).verdict, Verdict::unjudged);
}

TEST(Trend, NeedsTwoValues) {
  lab::Results results = repeated({nodes(1, 4)});
  const Finding finding = check(results, {trend("grows")});
  EXPECT_EQ(finding.verdict, Verdict::unjudged);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("known at only one nodes (1)"));
}

TEST(Value, IsAskedOfEveryVariation) {
  lab::Results results = repeated({nodes(1, 4), nodes(2, 2), nodes(2, 3, 2)});
  const FindingTest test{.kind = TestKind::value, .field = "epoch_seconds", .at_least = 2.5, .at_most = 4.5};
  const Finding finding = check(results, {test});
  EXPECT_EQ(finding.verdict, Verdict::holds);
  EXPECT_THAT(finding.sentences.at(0),
              HasSubstr("1 nodes: 4.00 s; 2 nodes: 2.50 s, at least 2.50 s and at most 4.50 s: holds in both cases."));
}

MadeRun two_workers(double first, double second) {
  return {.label = "two",
          .values = {{"iterations", first + second}},
          .roles = {{"worker:0", "node1", {{"iterations", first}}},
                    {"worker:1", "node2", {{"iterations", second}}},
                    {"ps:0", "node1", {{"iterations", 0}}}}};
}

TEST(Spread, IsBetweenTheWorkersOfARun) {
  FindingTest test{.kind = TestKind::spread, .field = "iterations", .is = "together", .within = 0.05};
  lab::Results results = repeated({two_workers(100, 98)});
  EXPECT_EQ(check(results, {test}).verdict, Verdict::holds);
  results = repeated({two_workers(100, 80)});
  const Finding finding = check(results, {test});
  EXPECT_EQ(finding.verdict, Verdict::fails);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("20.0 % apart (80 to 100)"));
  test.is = "apart";
  EXPECT_EQ(check(results, {test}).verdict, Verdict::holds);
  results = repeated({nodes(1, 1)});
  EXPECT_EQ(check(results, {test}).verdict, Verdict::unjudged);
}

// An interval of spreads, which are never negative, reaches below 0 even if the workers of every run differ.
TEST(Spread, OfNothingIsDecidedByEachRun) {
  FindingTest test{.kind = TestKind::spread, .field = "iterations", .is = "apart", .within = 0};
  const auto runs = [](std::vector<double> seconds) {
    std::vector<MadeRun> all;
    for (const double second : seconds) {
      all.push_back(two_workers(100, second));
      all.back().repeat = static_cast<int>(all.size());
    }
    return made_results(all);
  };
  lab::Results results = runs({99, 99, 60});
  const Finding differ = check(results, {test});
  EXPECT_EQ(differ.verdict, Verdict::holds) << differ.sentences.at(0);
  EXPECT_THAT(differ.sentences.at(0), EndsWith("should differ: holds."));
  results = runs({99, 100, 60});
  const Finding part = check(results, {test});
  EXPECT_EQ(part.verdict, Verdict::partly);
  EXPECT_THAT(part.sentences.at(0), HasSubstr("so in 2 of 3 runs"));
  results = runs({100, 100, 100});
  EXPECT_EQ(check(results, {test}).verdict, Verdict::fails);
  test.is = "together";
  EXPECT_EQ(check(results, {test}).verdict, Verdict::holds);
}

TEST(Machines, AreComparedByWhetherTheyHaveTheServer) {
  MadeRun run{.label = "three", .values = {{"cpu_percent", 50}}};
  run.roles = {{"worker:0", "node1", {{"network_received", 20e6}, {"memory", 3e6}}},
               {"worker:1", "node2", {{"network_received", 9e6}, {"memory", 2e6}}},
               {"worker:2", "node3", {{"network_received", 11e6}, {"memory", 2e6}}},
               {"ps:0", "node1", {{"network_received", 20e6}, {"memory", 1e6}}}};
  lab::Results results = repeated({run});
  lab::FindingTest test = FindingTest{.kind = TestKind::ratio,
                                      .field = "network_received",
                                      .first = where({{"with_server", {"yes"}}}),
                                      .second = where({{"with_server", {"no"}}}),
                                      .at_least = 1.9,
                                      .at_most = 2.1};
  test.per = lab::Per::machine;
  results.experiment.report.findings = {{"f", "It is so.", {test}, {}}};
  const Finding finding = check_findings(results).front();
  EXPECT_EQ(finding.verdict, Verdict::holds);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("2.00 times that with no server on the machine (20"));
  const std::vector<lab::RoleMeasured> machines = machines_of(results.runs.front());
  ASSERT_EQ(machines.size(), 3U);
  EXPECT_EQ(machines[0].role, "worker:0, ps:0");
  EXPECT_EQ(machines[0].values.at("memory"), 4e6) << "of its processes together";
}

TEST(Finding, WithAReasonNotToJudgeItIsNotJudged) {
  lab::Results results = repeated({nodes(1, 3.74), nodes(3, 1.42)});
  results.experiment.report.findings = {{"f", "It is so.", {ratio(0.42)}, {}, true, "the nodes are too small."}};
  const Finding finding = check_findings(results).front();
  EXPECT_EQ(finding.verdict, Verdict::unjudged);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("0.38 of that")) << "its figures stay";
  EXPECT_EQ(finding.sentences.at(1), "Not judged here: the nodes are too small.");
}

TEST(Finding, EndsWithItsNote) {
  lab::Results results = repeated({nodes(1, 3.74), nodes(3, 1.42)});
  results.experiment.report.findings = {{"f", "It is so.", {ratio(0.42)}, {}, false, "", "Links were full."}};
  const Finding finding = check_findings(results).front();
  EXPECT_EQ(finding.verdict, Verdict::holds);
  EXPECT_EQ(finding.sentences.back(), "Links were full.");
}

TEST(Most, NamesTheWorkerWithTheMost) {
  FindingTest test{.kind = TestKind::most, .field = "iterations", .over = "worker", .is = "worker:0"};
  lab::Results results = repeated({two_workers(100, 80)});
  const Finding finding = check(results, {test});
  EXPECT_EQ(finding.verdict, Verdict::holds);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("worker:0 100, worker:1 80"));
  test.is = "1";
  EXPECT_EQ(check(results, {test}).verdict, Verdict::fails);
  test.kind = TestKind::least;
  EXPECT_EQ(check(results, {test}).verdict, Verdict::holds);
}

TEST(Most, ATieIsNoLead) {
  FindingTest test{.kind = TestKind::most, .field = "iterations", .over = "worker", .is = "worker:1"};
  lab::Results results = repeated({two_workers(100, 98)});
  const Finding finding = check(results, {test});
  EXPECT_EQ(finding.verdict, Verdict::fails);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("worker:0 and worker:1 alike"));
}

TEST(Least, NeedsTheOneAskedFor) {
  const FindingTest test{.kind = TestKind::least, .field = "epoch_seconds", .over = "label", .is = "7 nodes"};
  lab::Results results = repeated({nodes(1, 4), nodes(2, 2)});
  const Finding finding = check(results, {test});
  EXPECT_EQ(finding.verdict, Verdict::unjudged);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("no figure for 7 nodes"));
}

TEST(Findings, HoldPartlyWhereATestDoes) {
  lab::Results results = repeated({nodes(1, 3.74), nodes(3, 1.42)});
  EXPECT_EQ(check(results, {ratio(0.42), ratio(0.3)}).verdict, Verdict::partly);
  EXPECT_EQ(check(results, {ratio(0.2), ratio(0.3)}).verdict, Verdict::fails);
  EXPECT_EQ(check(results, {}).verdict, Verdict::unjudged);
}

TEST(Reasons, SetTheExplainingFieldsOfBothSidesBesideEachOther) {
  lab::Results results = repeated({nodes(1, 4), nodes(4, 2)});
  FindingTest test = ratio(0.6);
  test.first = where({{"nodes", {"4"}}});
  const Finding finding = check(results, {test}, {"share_compute", "ps_memory"});
  EXPECT_THAT(finding.reasons, ElementsAre("Computing: 25.00 % with nodes 4; 100 % with nodes 1."));
}

TEST(Findings, PassOverATestOfWhichNothingIsKnown) {
  lab::Results results = repeated({nodes(1, 3.74), nodes(3, 1.42)});
  FindingTest unknown = ratio(1);
  unknown.field = "ps_memory";
  const Finding finding = check(results, {ratio(0.42), unknown});
  EXPECT_EQ(finding.verdict, Verdict::holds);
  EXPECT_THAT(finding.sentences.at(1), EndsWith("not judged, and does not count in the verdict."));
}

TEST(Findings, DoNotHoldWhileRunsOfATestFailed) {
  lab::Results results = repeated({nodes(1, 3.74), nodes(3, 1.42)});
  results.runs.push_back(testing::made_run(nodes(4, 0)));
  results.runs.back().state = lab::RunState::failed;
  FindingTest failed = ratio(1);
  failed.first = where({{"nodes", {"4"}}});
  EXPECT_EQ(check(results, {ratio(0.42), failed}).verdict, Verdict::unjudged);
  EXPECT_EQ(check(results, {ratio(0.2), failed}).verdict, Verdict::fails);
}

TEST(Reasons, AreOfTheCasesThatDoNotHold) {
  lab::Results results = repeated(
      {mode_batch("sync", 32, 1), mode_batch("async", 32, 4), mode_batch("sync", 64, 9), mode_batch("async", 64, 4)});
  for (size_t i = 0; i < 12; ++i)
    results.runs[i].measured.values["share_compute"] = 0.1 * static_cast<double>(i / 3 + 1);
  EXPECT_THAT(check(results, {compare("less")}, {"share_compute"}).reasons,
              ElementsAre("Computing where it does not hold: 30.00 % with mode sync; 40.00 % with mode async."));
}

TEST(Reasons, OfWorkersLeaveOutWhatIsOfRunsAlone) {
  const FindingTest test{.kind = TestKind::most, .field = "iterations", .over = "worker", .is = "worker:0"};
  lab::Results results = repeated({two_workers(100, 80)});
  results.runs[0].measured.values["ps_memory"] = 1e6;
  EXPECT_THAT(check(results, {test}, {"ps_memory"}).reasons, IsEmpty());
}

TEST(Reasons, SayWhatLimitedARun) {
  const testing::TempDir dir;
  testing::write_cluster_run(dir.path() + "/three");
  lab::Results results = repeated({nodes(1, 4), nodes(3, 2)});
  results.runs[3].folder = dir.path() + "/three";
  results.runs[0].folder = dir.path() + "/gone";
  const Finding finding = check(results, {ratio(0.6)});
  ASSERT_EQ(finding.reasons.size(), 1);
  EXPECT_THAT(finding.reasons[0], StartsWith("3 nodes: "));
}

TEST(Reasons, AreLeftOutWhereTheyExplainNothing) {
  const testing::TempDir dir;
  testing::write_cluster_run(dir.path() + "/one");
  lab::Results results = repeated({nodes(1, 4), nodes(3, 2)});
  for (lab::RunResult& run : results.runs) {
    run.folder = dir.path() + "/one";
    run.measured.values["accuracy"] = 0.9;
  }
  EXPECT_THAT(check(results, {ratio(0.6)}).reasons, IsEmpty()) << "the same limited both sides";
  results.runs[0].folder = results.runs[1].folder = results.runs[2].folder = dir.path() + "/gone";
  EXPECT_THAT(check(results, {ratio(0.6)}).reasons, ::testing::SizeIs(1));
  FindingTest accuracy = ratio(1.1);
  accuracy.field = "accuracy";
  EXPECT_THAT(check(results, {accuracy}).reasons, IsEmpty()) << "what limits the speed does not change the accuracy";
}

/// Makes a run with roles, which tell how many train.
MadeRun crew(int workers, int batch, double rate, int repeat = 1) {
  MadeRun run{.varied = {{"batch", std::to_string(batch)}},
              .values = {{"examples_per_second", rate}, {"epoch_seconds", 1}, {"train_cores", workers}},
              .repeat = repeat};
  if (workers == 1) run.roles = {{"process", "host", {}}};
  for (int i = 0; workers > 1 && i < workers; ++i) run.roles.push_back({fmt::format("worker:{}", i), "host", {}});
  if (workers > 1) run.varied.emplace_back("workers", std::to_string(workers));
  return run;
}

FindingTest at_least(const std::string& field, int batch, double least) {
  return {.kind = TestKind::value,
          .field = field,
          .first = where({{"batch", {std::to_string(batch)}}, {"workers", {"3"}}}),
          .at_least = least};
}

TEST(SpeedUp, IsAgainstTheRunOfOneTrainerThatIsElseTheSame) {
  lab::Results results = repeated({crew(1, 32, 3), crew(3, 32, 6), crew(1, 64, 2), crew(3, 64, 5), crew(3, 8, 1)});
  EXPECT_THAT(check(results, {at_least("speed_up", 32, 2)}).sentences.at(0), HasSubstr("2.00, at least 2.00: holds."));
  EXPECT_THAT(check(results, {at_least("speed_up", 64, 2)}).sentences.at(0), HasSubstr("2.50,"));
  EXPECT_THAT(check(results, {at_least("efficiency", 32, 0.5)}).sentences.at(0), HasSubstr("66.67"));
  EXPECT_EQ(check(results, {at_least("speed_up", 8, 1)}).verdict, Verdict::unjudged);
}

TEST(SpeedUp, EfficiencyIsPerCoreOrUnknown) {
  const auto judged = [](const std::vector<MadeRun>& runs) {
    lab::Results results = repeated(runs);
    return check(results, {at_least("efficiency", 32, 0.5)});
  };
  MadeRun one = crew(1, 32, 3);
  MadeRun three = crew(3, 32, 6);
  one.values["train_cores"] = 3;  // of three threads: the hardware of three workers of one thread
  EXPECT_THAT(judged({one, three}).sentences.at(0), AllOf(HasSubstr("fficiency per core"), HasSubstr("200.00 %")));
  for (MadeRun* run : {&one, &three}) run->values.erase("train_cores");
  EXPECT_EQ(judged({one, three}).verdict, Verdict::unjudged);
  for (MadeRun* run : {&one, &three}) run->varied.emplace_back("threads", "1");  // alike by the settings
  EXPECT_THAT(judged({one, three}).sentences.at(0), HasSubstr("66.67"));
}

TEST(SpeedUp, OfRunsOnHostsIsAgainstOneProcess) {
  MadeRun hosts = crew(3, 32, 6);
  for (const char* setting : {"hosts", "tls", "insecure"}) hosts.varied.emplace_back(setting, "some");
  lab::Results results = repeated({crew(1, 32, 3), hosts});
  EXPECT_THAT(check(results, {at_least("speed_up", 32, 2)}).sentences.at(0), HasSubstr("2.00, at least 2.00: holds."));
}

TEST(SpeedUp, OfRepeatsIsTheirMeanRateOverTheBaselines) {
  lab::Results results = made_results({crew(1, 32, 1), crew(1, 32, 3, 2), crew(3, 32, 1), crew(3, 32, 9, 2)});
  const Finding finding = check(results, {at_least("speed_up", 32, 2)});
  EXPECT_EQ(finding.verdict, Verdict::noise);
  EXPECT_THAT(finding.sentences.at(0), HasSubstr("2.50 [0.00, ∞], within noise"));
}

MadeRun served(const std::string& mode, int workers, double rate) {
  MadeRun run{.label = fmt::format("{} {}", mode, workers),
              .varied = {{"mode", mode}, {"workers", std::to_string(workers)}},
              .values = {{"examples_per_second", rate}},
              .roles = {{"ps:0", "host", {}}}};
  for (int i = 0; i < workers; ++i) run.roles.push_back({fmt::format("worker:{}", i), "host", {}});
  return run;
}

TEST(SpeedUp, IsAgainstTheSameModeWhereThatRan) {
  lab::Results results = repeated({served("sync", 1, 2), served("async", 1, 10), served("async", 2, 15),
                                   served("sync", 2, 3), served("backup", 2, 6)});
  const FindingTest test{.kind = TestKind::value, .field = "speed_up", .by = {"label"}, .at_least = 1};
  EXPECT_THAT(check(results, {test}).sentences.at(0),
              HasSubstr("sync 1: 1.00; async 1: 1.00; async 2: 1.50; sync 2: 1.50"));
  results.runs.erase(results.runs.begin() + 6, results.runs.begin() + 12);
  EXPECT_THAT(check(results, {test}).sentences.at(0), HasSubstr("backup 2: 1.00"));
}

}  // namespace
}  // namespace lockstep::report
