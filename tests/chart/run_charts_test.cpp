#include "chart/run_charts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "records/run_folders.h"

namespace lockstep::chart {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RunCharts : public ::testing::Test {
 protected:
  RunCharts() { testing::write_cluster_run(path()); }
  [[nodiscard]] std::string path() const { return dir_.path() + "/two"; }

  testing::TempDir dir_;
};

TEST_F(RunCharts, CurvesAreThoseOfTheEvaluations) {
  const records::RunRecord run = records::read_run(path());
  const Chart chart = curves({&run, &run}, "accuracy", Over::step);
  ASSERT_THAT(chart.series, SizeIs(2));
  EXPECT_EQ(chart.series[0].name, "two");
  EXPECT_THAT(chart.series[0].x, ElementsAre(100, 200));
  EXPECT_THAT(chart.series[0].y, ElementsAre(0.87, 0.892));
  EXPECT_EQ(chart.y.unit, "share");
}

TEST_F(RunCharts, EpochsHaveFractions) {
  const records::RunRecord run = records::read_run(path());
  EXPECT_THAT(curves({&run}, "loss", Over::epoch).series[0].x, ElementsAre(0.5, 1));
  EXPECT_THAT(curves({&run}, "train_loss", Over::seconds).series[0].x, ElementsAre(0.1, 0.3, 0.5));
}

TEST_F(RunCharts, OwnIterationsAreTheStepsThatAWorkerMade) {
  testing::put_text(path() + "/worker-1/phases.csv", "step,seconds,steps\n100,0.3,30\n200,0.5,50\n");
  const records::RunRecord run = records::read_run(path());
  EXPECT_THAT(curve(run, *run.role("worker:1"), "loss", over_of("iteration")).x, ElementsAre(30, 80));
  EXPECT_THAT(curve(run, "loss", Over::iteration).x, ElementsAre(100, 200));
}

TEST_F(RunCharts, LongSeriesKeepTheirPeaks) {
  std::string steps(testing::kStepsCsv);
  for (int i = 201; i <= 5000; ++i) {
    steps += fmt::format("{},1,{},{},0.9,0.1,1,0.002\n", i, 0.5 + i * 0.001, i == 3333 ? 77.0 : 0.5);
  }
  testing::put_text(path() + "/steps.csv", steps);
  const records::RunRecord run = records::read_run(path());
  const Chart chart = curves({&run}, "train_loss", Over::step);
  EXPECT_LE(chart.series[0].x.size(), kMostPoints);
  EXPECT_EQ(records::largest(chart.series[0].y), 77);
}

TEST_F(RunCharts, UsageHasASeriesForEachRoleThatWasWatched) {
  const records::RunRecord run = records::read_run(path());
  const Chart cpu = usage(run, "cpu_percent");
  ASSERT_THAT(cpu.series, SizeIs(2));
  EXPECT_EQ(cpu.series[1].name, "worker:1");
  EXPECT_THAT(cpu.series[0].x, ElementsAre(0.5, 1, 1.5));
  EXPECT_EQ(usage(run, "node_cpu_percent").series[0].name, "north (worker:0, ps:0)");
  EXPECT_THAT(usage(run, "cpu_percent", {"worker:1"}).series, SizeIs(1));
  EXPECT_THAT(usage(run, "no_such_column").series, IsEmpty());
}

TEST_F(RunCharts, ANodeHasOneLineAlsoIfItsRolesTellNoHost) {
  for (const char* role : {"", "/worker-1"}) testing::put_text(path() + role + "/summary.json", R"({"steps": 200})");
  const Chart chart = usage(records::read_run(path()), "node_cpu_percent");
  ASSERT_THAT(chart.series, SizeIs(1));
  EXPECT_THAT(chart.series[0].name, ::testing::StartsWith("this node (worker:0"));
}

TEST_F(RunCharts, TheLastTinyIntervalIsDropped) {
  std::string monitor = "time,seconds,cpu_percent\n";
  for (int i = 0; i < 5; ++i) monitor += fmt::format("{},{},50\n", 1794787200 + i, i);
  testing::put_text(path() + "/monitor.csv", monitor + "1794787204.01,4.01,4000\n");
  EXPECT_EQ(records::largest(usage(records::read_run(path()), "cpu_percent").series[0].y), 50);
  testing::put_text(path() + "/monitor.csv", monitor + "1794787204.9,4.9,60\n");
  EXPECT_EQ(records::largest(usage(records::read_run(path()), "cpu_percent").series[0].y), 60) << "long enough";
}

TEST_F(RunCharts, PhasesOfARoleAddUpToItsTime) {
  const records::RunRecord run = records::read_run(path());
  const Chart chart = phases(run);
  ASSERT_THAT(chart.x.categories, ElementsAre("worker:0 (north)", "worker:1 (south)", "ps:0 (north)"));
  for (size_t role = 0; role < 3; ++role) {
    double sum = 0;
    for (const Series& series : chart.series) sum += series.y[role];
    EXPECT_NEAR(sum, 1, 1e-9);
  }
}

TEST_F(RunCharts, TheTimelineHasFaultsWhereTheyHappened) {
  testing::put_text(path() + "/faults.jsonl",
                    "{\"seconds\": 0.75, \"time\": 1794787200.75, \"fault\": \"kill worker:1\"}\n");
  const records::RunRecord run = records::read_run(path());
  const Chart chart = timeline(run);
  EXPECT_THAT(chart.rows, SizeIs(3));
  ASSERT_THAT(chart.marks, SizeIs(1));
  EXPECT_EQ(chart.marks[0].x, 0.75);
  EXPECT_EQ(chart.marks[0].label, "kill worker:1");
  ASSERT_FALSE(chart.spans.empty());
  EXPECT_EQ(chart.spans[0].name, "trains");
  EXPECT_DOUBLE_EQ(chart.spans[0].to, 0.5);  // by the chief; its process stayed longer
  EXPECT_EQ(chart.spans[1].name, "has finished");
}

TEST_F(RunCharts, AreEmptyForAFolderWithoutLogs) {
  testing::put_text(dir_.path() + "/bare/config.yaml", "model: lr\n");
  const records::RunRecord run = records::read_run(dir_.path() + "/bare");
  EXPECT_THAT(curves({&run}, "accuracy", Over::epoch).series[0].x, IsEmpty());
  EXPECT_THAT(phases(run).series, IsEmpty());
  EXPECT_THAT(timeline(run).spans, IsEmpty());
}

}  // namespace
}  // namespace lockstep::chart
