#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "made_results.h"
#include "records/run_folders.h"
#include "report/figures.h"
#include "report/report.h"

namespace lockstep::report {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::made_results;
using testing::MadeRun;
using ::testing::SizeIs;

/// Searches a page; matchers would print all of it.
bool has(const std::string& page, const std::string& text) { return page.find(text) != std::string::npos; }

/// Returns the charts in a page.
nlohmann::json charts_of(const std::string& page) {
  const std::string begin = "id=\"charts\">";
  const size_t from = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(from, page.find("</script>", from) - from));
}

MadeRun batch(int size, double accuracy, int repeat = 1) {
  return {.varied = {{"batch", std::to_string(size)}},
          .values = {{"accuracy", accuracy}, {"epoch_seconds", 64.0 / size}},
          .repeat = repeat};
}

lab::TableSpec table(std::vector<std::string> rows, std::vector<std::string> columns) {
  lab::TableSpec spec;
  spec.name = "t";
  spec.rows = std::move(rows);
  spec.columns = std::move(columns);
  return spec;
}

lab::PlotSpec plot(lab::PlotKind kind, const std::string& x, std::vector<std::string> y) {
  lab::PlotSpec spec;
  spec.name = "p";
  spec.kind = kind;
  spec.x = x;
  spec.y = std::move(y);
  return spec;
}

TEST(Page, OfAnExperimentWithoutRunsIsAPage) {
  const std::string page = html(made_results({}));
  EXPECT_THAT(page, ::testing::StartsWith("<!doctype html>"));
  EXPECT_TRUE(has(page, "This experiment has no runs"));
  EXPECT_THAT(charts_of(page), IsEmpty());
}

TEST(Page, SaysWhatIsNotDoneAndWhyRunsFailed) {
  lab::Results results = made_results({batch(32, 0.9), batch(64, 0.9), batch(128, 0.9)});
  results.runs[0].state = lab::RunState::failed;
  results.runs[0].reason = "it ran out of <memory>";
  results.runs[1].state = lab::RunState::planned;
  const std::string page = html(results);
  EXPECT_TRUE(has(page, "3 runs are planned; 1 done, 1 failed, 1 not started."));
  EXPECT_TRUE(has(page, "it ran out of &lt;memory&gt;"));
  EXPECT_TRUE(has(page, "2 runs are missing: 1 failed (batch 32), 1 not run yet."));
}

TEST(Page, TellsRepeatsThatFailedAlikeTogetherAndWhereTheirLogsAre) {
  lab::Results results = made_results({batch(32, 0.9, 1), batch(32, 0.9, 2), batch(64, 0.9), batch(128, 0.9)});
  results.folder = "lab/made";
  for (lab::RunResult& run : results.runs) run.folder = "lab/made/runs/" + run.plan.key;
  for (size_t i = 0; i < 3; ++i) {
    results.runs[i].state = lab::RunState::failed;
    results.runs[i].reason = i < 2 ? "worker:1 died" : "no data";
    results.runs[i].measured = {};
  }
  results.runs[3].measured.values["restarts"] = 2;
  const std::string page = html(results);
  EXPECT_TRUE(has(page, "<li>batch 32, repeats 1, 2: <span class=\"reason\">worker:1 died</span></li>"));
  EXPECT_TRUE(has(page, "<li>batch 64, repeat 1: <span class=\"reason\">no data</span></li>"));
  EXPECT_TRUE(has(page, "<code>lab/made/logs/g--batch=32-r2.log</code>"));
  EXPECT_TRUE(has(page, "Roles were restarted 2 times."));
}

TEST(Page, SaysThatItIsTheQuickForm) {
  lab::Results results = made_results({batch(32, 0.9)});
  EXPECT_FALSE(has(html(results), "quick form"));
  results.experiment.scale = "quick";
  EXPECT_TRUE(has(html(results), "This is the quick form"));
}

TEST(Page, SaysWhatIsLeftOutAndWhatIsNotTheStudys) {
  lab::Results results = made_results({batch(32, 0.9)});
  results.experiment.cut = {"two of <three> batches"};
  lab::FindingSpec ours{"o", "So it is.", {}, {}};
  ours.ours = true;
  ours.not_judged = "nothing measures it.";
  results.experiment.report.findings = {ours, {"s", "And so.", {}, {}, false, "no tests."}};
  const std::string page = html(results);
  EXPECT_TRUE(has(page, "<li>two of &lt;three&gt; batches</li>"));
  EXPECT_TRUE(has(page, "Not judged here: nothing measures it."));
  const size_t first = page.find("Not a claim of the study");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(page.find("Not a claim of the study", first + 1), std::string::npos) << "only the one that is ours";
}

TEST(Page, TrustsNoName) {
  const std::string evil = "</script><script>alert('x')</script>\"onload=";
  lab::Results results = made_results({{.group = evil,
                                        .label = evil,
                                        .varied = {{"batch", evil}},
                                        .tags = {{"nodes", evil}},
                                        .values = {{"accuracy", 0.5}, {"seconds", 1}},
                                        .roles = {{evil, evil, {{"accuracy", 0.5}}}}}});
  results.experiment.title = results.experiment.about = results.experiment.text = evil;
  results.environment = {evil, evil, evil, evil, 2, 1e9, evil};
  results.command = results.runs[0].folder = results.runs[0].reason = evil;
  lab::TableSpec rows = table({"label", "worker"}, {"accuracy", "batch"});
  rows.name = rows.title = rows.text = evil;
  rows.per = lab::Per::worker;
  lab::PlotSpec bars = plot(lab::PlotKind::bars, "label", {"accuracy"});
  bars.name = bars.title = bars.text = evil;
  bars.series = bars.facets = {"nodes"};
  results.experiment.report = {{rows}, {bars, plot(lab::PlotKind::curves, "epoch", {"loss"})}, {{evil, evil, {}, {}}}};
  const std::string page = html(results);
  EXPECT_FALSE(has(page, "<script>alert"));
  EXPECT_FALSE(has(page.substr(0, page.find("id=\"charts\"")), "\"onload"));
  EXPECT_THAT(charts_of(page), SizeIs(1));
}

TEST(Page, ForbidsToFetchAnything) {
  const std::string page = html(made_results({batch(32, 0.9)}));
  EXPECT_TRUE(has(page, "default-src 'none'"));
  EXPECT_FALSE(has(page, "<link"));
  EXPECT_FALSE(has(page, " src="));
}

TEST(Table, ShowsMeanIntervalAndNumberOfRuns) {
  lab::Results results = made_results({batch(64, 0.90, 1), batch(64, 0.92, 2), batch(8, 0.6)});
  results.experiment.report.tables = {table({"batch"}, {"accuracy"})};
  const std::string page = html(results);
  EXPECT_TRUE(has(
      page, "<td class=\"text\">64</td><td>91.00 <span class=\"sd\">± 12.71</span></td><td class=\"faint\">2</td>"));
  EXPECT_LT(page.find("<td class=\"text\">8</td>"), page.find("<td class=\"text\">64</td>"));
}

TEST(Table, SetsReportedFiguresBeside) {
  lab::Results results = made_results({batch(64, 0.90), batch(8, 0.6)});
  lab::TableSpec spec = table({"batch"}, {"accuracy", "epoch_seconds"});
  spec.reported = "r.csv";
  spec.reported_columns = {{"batch", "batch"}, {"accuracy", "accuracy_percent"}, {"epoch_seconds", "seconds"}};
  results.experiment.reported = {{"r.csv", "batch,accuracy_percent,seconds\n64,91.5,2;4\n600,1,1\n"}};
  results.experiment.report.tables = {spec};
  const std::string page = html(results);
  EXPECT_TRUE(has(page, "<td class=\"reported\">91.50</td><td class=\"faint\">-1.50 pp</td>"));
  EXPECT_TRUE(has(page, "<td class=\"reported\">3.00</td><td class=\"faint\">0.33</td>"));
  EXPECT_TRUE(has(page, "1 of its 2 rows has no counterpart here."));
}

TEST(Table, SaysThatReportedRowsWereAveraged) {
  lab::Results results = made_results({batch(64, 0.90)});
  lab::TableSpec spec = table({"batch"}, {"accuracy"});
  spec.reported = "r.csv";
  spec.reported_columns = {{"batch", "batch"}, {"accuracy", "accuracy_percent"}};
  results.experiment.reported = {{"r.csv", "batch,accuracy_percent\n64,88.4\n64,88.6\n"}};
  results.experiment.report.tables = {spec};
  EXPECT_TRUE(has(html(results), "<td class=\"reported\">88.50 <span class=\"sd\">mean of 2</span></td>"));
}

TEST(Table, OfAQuickStudyHasNoRatios) {
  lab::Results results = made_results({batch(64, 0.90)});
  lab::TableSpec spec = table({"batch"}, {"accuracy", "epoch_seconds"});
  spec.reported = "r.csv";
  spec.reported_columns = {{"batch", "batch"}, {"accuracy", "accuracy_percent"}, {"epoch_seconds", "seconds"}};
  results.experiment.reported = {{"r.csv", "batch,accuracy_percent,seconds\n64,91.5,2\n"}};
  results.experiment.report.tables = {spec};
  EXPECT_TRUE(has(html(results), ">ratio</th>"));
  results.experiment.scale = "quick";
  const std::string page = html(results);
  EXPECT_FALSE(has(page, ">ratio</th>"));
  EXPECT_FALSE(has(page, ">difference</th>"));
  EXPECT_TRUE(has(page, "They are not comparable with this quick form"));
}

TEST(Table, SaysWhatItsMeansAreOver) {
  lab::Results results = made_results({batch(64, 0.90, 1), batch(64, 0.92, 2), batch(8, 0.6)});
  results.experiment.report.tables = {table({"group"}, {"accuracy"})};
  EXPECT_TRUE(has(html(results), "Means are over batch 64, 8, intervals over repeats."));
  results.experiment.report.tables = {table({"batch"}, {"accuracy"})};
  EXPECT_FALSE(has(html(results), "Means are over"));
}

TEST(Table, IsNamedForScreenReaders) {
  lab::Results results = made_results({batch(64, 0.90)});
  results.experiment.report.tables = {table({"batch"}, {"accuracy"})};
  const std::string page = html(results);
  EXPECT_TRUE(has(page, "role=\"region\" aria-labelledby=\"table-t-title\""));
  EXPECT_TRUE(has(page, "<h3 id=\"table-t-title\">"));
}

TEST(Plot, SaysWhatItsMeansAreOver) {
  MadeRun other = batch(64, 0.2);
  other.varied.emplace_back("mode", "async");
  lab::Results results = made_results({batch(8, 0.5), batch(64, 0.8), other});
  results.experiment.report.plots = {plot(lab::PlotKind::lines, "batch", {"accuracy"})};
  EXPECT_EQ(charts_of(html(results))[0]["text"], "Figures are means over mode by default, async.");
}

TEST(Plot, ReportedFiguresFarOffGetALogAxisOrASentence) {
  lab::Results results = made_results({batch(8, 0.5), batch(64, 0.8)});
  lab::PlotSpec spec = plot(lab::PlotKind::lines, "batch", {"epoch_seconds"});
  spec.reported = "r.csv";
  spec.reported_columns = {{"batch", "batch"}, {"epoch_seconds", "seconds"}};
  results.experiment.reported = {{"r.csv", "batch,seconds\n8,400\n64,116\n"}};
  results.experiment.report.plots = {spec};
  nlohmann::json chart = charts_of(html(results))[0];
  EXPECT_EQ(chart["y"]["log"], true);
  EXPECT_THAT(chart["series"], SizeIs(2));
  results.experiment.report.plots[0].kind = lab::PlotKind::bars;
  const std::string page = html(results);
  EXPECT_THAT(charts_of(page)[0]["series"], SizeIs(1));
  EXPECT_TRUE(has(page, "The reported figures, 116 s to 400 s of time of an epoch, are too far"));
  results.experiment.reported = {{"r.csv", "batch,seconds\n8,40\n64,11\n"}};
  chart = charts_of(html(results))[0];
  EXPECT_FALSE(chart["y"].value("log", false));
  EXPECT_THAT(chart["series"], SizeIs(2));
}

TEST(Plot, LinesHaveASeriesForEachValueWithItsInterval) {
  std::vector<MadeRun> runs = {batch(8, 0.5), batch(64, 0.84, 1), batch(64, 0.86, 2)};
  lab::Results results = made_results(runs);
  results.experiment.report.plots = {plot(lab::PlotKind::lines, "batch", {"accuracy"})};
  results.experiment.report.plots[0].y2 = {"epoch_seconds"};
  const auto charts = charts_of(html(results));
  ASSERT_THAT(charts, SizeIs(1));
  ASSERT_THAT(charts[0]["series"], SizeIs(2));
  EXPECT_EQ(charts[0]["series"][0]["x"], nlohmann::json({8, 64}));
  EXPECT_NEAR(charts[0]["series"][0]["y"][1], 0.85, 1e-9);
  EXPECT_NEAR(charts[0]["series"][0]["low"][1], 0.85 - 12.7062 * 0.01, 1e-5);
  EXPECT_NEAR(charts[0]["series"][0]["high"][1], 0.85 + 12.7062 * 0.01, 1e-5);
  EXPECT_EQ(charts[0]["series"][1]["second_axis"], true);
  EXPECT_EQ(charts[0]["y2"]["unit"], "s");
}

TEST(Plot, FacetsShareTheirAxis) {
  MadeRun other = batch(64, 0.2);
  other.varied.emplace_back("mode", "async");
  lab::Results results = made_results({batch(8, 0.5), batch(64, 0.8), other});
  results.experiment.report.plots = {plot(lab::PlotKind::bars, "batch", {"accuracy"})};
  results.experiment.report.plots[0].facets = {"mode"};
  const auto charts = charts_of(html(results));
  ASSERT_THAT(charts, SizeIs(2));
  EXPECT_EQ(charts[0]["y"]["shows"], nlohmann::json({0.2, 0.8}));
  EXPECT_EQ(charts[1]["title"], "Test accuracy by batch size: mode async");
}

TEST(Plot, AFacetThatWouldBeFlatOnTheSharedAxisHasItsOwn) {
  std::vector<MadeRun> runs{batch(8, 0), batch(64, 0), batch(8, 0), batch(64, 0), batch(8, 0), batch(64, 0)};
  const std::vector<double> losses{120, 150, 2, 2.5, 0, 0};
  for (size_t i = 0; i < runs.size(); ++i) {
    runs[i].values["loss"] = losses[i];
    runs[i].varied.emplace_back("model", i < 2 ? "autoencoder" : i < 4 ? "stn" : "nothing");
  }
  lab::Results results = made_results(runs);
  results.experiment.report.plots = {plot(lab::PlotKind::bars, "batch", {"loss"})};
  results.experiment.report.plots[0].facets = {"model"};
  const auto charts = charts_of(html(results));
  ASSERT_THAT(charts, SizeIs(3));
  EXPECT_EQ(charts[0]["y"]["shows"], nlohmann::json({0, 150}));
  EXPECT_EQ(charts[1]["y"]["shows"], nlohmann::json({0, 2.5}));
  EXPECT_EQ(charts[2]["y"]["shows"], nlohmann::json({0, 150}));
}

TEST(Plot, WideIntervalsDoNotMakeTheSharedAxisOfCurvesWide) {
  std::vector<MadeRun> runs;
  for (const char* mode : {"sync", "async"}) {
    for (const auto& [size, accuracy] : {std::pair{8, 0.90}, {64, 0.94}}) {
      for (const int repeat : {1, 2}) {  // two repeats, with intervals of 25 points
        runs.push_back(batch(size, accuracy + 0.04 * (repeat - 1.5), repeat));
        runs.back().varied.emplace_back("mode", mode);
      }
    }
  }
  lab::Results results = made_results(runs);
  results.experiment.report.plots = {plot(lab::PlotKind::lines, "batch", {"accuracy"})};
  results.experiment.report.plots[0].facets = {"mode"};
  for (const auto& chart : charts_of(html(results))) {
    EXPECT_LT(chart["series"][0]["low"][0], 0.7);
    EXPECT_NEAR(chart["y"]["shows"][0], 0.88, 1e-9);
    EXPECT_NEAR(chart["y"]["shows"][1], 0.96, 1e-9);
  }
}

TEST(Figures, HaveTheDigitsThatSaySomething) {
  const statistics::Estimate spread{.value = 2030613, .low = 1572586, .high = 2488640, .repeats = 3};
  EXPECT_EQ(spread_text(spread, lab::Unit::count), "2,030,000 ± 460,000");
  const statistics::Estimate same{.value = 1, .low = 1, .high = 1, .repeats = 3};
  EXPECT_EQ(spread_text(same, lab::Unit::times), "1.00 ×");
  const ColumnFormat wide = column_format({2.253e6, 0.0071e6, 35.2e6}, lab::Unit::bytes_per_second);
  EXPECT_EQ(column_text(2.253e6, wide), "2.25");
  const ColumnFormat losses = column_format({0.9812, 363168.4, 12.34}, lab::Unit::none);
  EXPECT_EQ(column_text(363168.4, precise_format(363168.4, losses)), "363,168");
  EXPECT_EQ(column_text(12.34, precise_format(12.34, losses)), "12.3");
  EXPECT_EQ(column_text(0.9812, precise_format(0.9812, losses)), "0.981");
  EXPECT_EQ(column_text(8, precise_format(8, losses)), "8");
  const ColumnFormat near = column_format({2.253, 1.5}, lab::Unit::seconds);
  EXPECT_EQ(column_text(2.253, near), "2.25");
  EXPECT_EQ(signed_text(-0.04, 1), "+0.0");
  EXPECT_EQ(signed_text(-0.06, 1), "-0.1");
  EXPECT_EQ(text_html("A step took 56.9 us & `lockstep plan` us."),
            "A step took 56.9 µs &amp; <code>lockstep plan</code> us.");
}

TEST(Plot, SpeedUpBeginsAtOneTrainerAndHasItsIdeal) {
  MadeRun one{
      .label = "one", .values = {{"examples_per_second", 3}, {"train_cores", 1}}, .roles = {{"process", "", {}}}};
  MadeRun three{.label = "three",
                .values = {{"examples_per_second", 6}, {"train_cores", 3}},
                .roles = {{"worker:0", "", {}}, {"worker:1", "", {}}, {"worker:2", "", {}}}};
  lab::Results results = made_results({one, three});
  results.experiment.report.plots = {plot(lab::PlotKind::speed_up, "", {})};
  results.experiment.report.plots[0].title = "Speed-up";
  const auto charts = charts_of(html(results));
  ASSERT_THAT(charts, SizeIs(2));
  EXPECT_EQ(charts[0]["series"][0]["x"], nlohmann::json({1, 3}));
  EXPECT_EQ(charts[0]["series"][0]["y"], nlohmann::json({1, 2}));
  EXPECT_EQ(charts[0]["title"], "Speed-up");
  EXPECT_EQ(charts[1]["title"], "Speed-up: efficiency per core");
  EXPECT_EQ(charts[0]["series"][1]["name"], "ideal");
  EXPECT_EQ(charts[0]["series"][1]["y"], nlohmann::json({1, 3}));
}

class PlotsOfFolders : public ::testing::Test {
 protected:
  PlotsOfFolders() {
    for (const std::string name : {"one", "two"}) testing::write_cluster_run(dir_.path() + "/" + name);
    std::string evals(testing::kEvalsCsv);
    evals.replace(evals.find("0.892"), 5, "0.992");
    testing::put_text(dir_.path() + "/two/evals.csv", evals);
    results_ = made_results({batch(64, 0.9, 1), batch(64, 0.9, 2), batch(8, 0.9)});
    results_.runs[0].folder = dir_.path() + "/one";
    results_.runs[1].folder = dir_.path() + "/two";
    results_.runs[2].folder = dir_.path() + "/gone";
  }
  std::string page_of(const lab::PlotSpec& spec) {
    results_.experiment.report.plots = {spec};
    return html(results_);
  }

  testing::TempDir dir_;
  lab::Results results_;
};

TEST_F(PlotsOfFolders, CurvesHaveABandOverRepeats) {
  const std::string page = page_of(plot(lab::PlotKind::curves, "step", {"accuracy"}));
  const auto charts = charts_of(page);
  ASSERT_THAT(charts, SizeIs(1));
  ASSERT_THAT(charts[0]["series"], SizeIs(1));
  EXPECT_EQ(charts[0]["series"][0]["x"], nlohmann::json({100, 200}));
  EXPECT_NEAR(charts[0]["series"][0]["y"][1], 0.942, 1e-6);
  EXPECT_NEAR(charts[0]["series"][0]["low"][1], 0.942 - 12.7062 * 0.05, 1e-5);
  EXPECT_EQ(charts[0]["series"][0]["high"][1], 1);  // no share is larger
  EXPECT_TRUE(has(page, "g--batch=8-r1 is not drawn: its folder is gone."));
}

TEST_F(PlotsOfFolders, CurvesOfWorkersAreApart) {
  lab::PlotSpec spec = plot(lab::PlotKind::curves, "seconds", {"train_loss"});
  spec.per = lab::Per::worker;
  const auto charts = charts_of(page_of(spec));
  ASSERT_THAT(charts[0]["series"], SizeIs(2));
  EXPECT_THAT(std::string(charts[0]["series"][1]["name"]), HasSubstr("worker:1"));
}

TEST_F(PlotsOfFolders, UsageIsOfTheRolesAskedFor) {
  lab::PlotSpec spec = plot(lab::PlotKind::usage, "", {"cpu_percent"});
  spec.roles = {"worker:1"};
  const auto charts = charts_of(page_of(spec));
  ASSERT_THAT(charts, SizeIs(1));
  EXPECT_THAT(charts[0]["series"], SizeIs(1));
}

TEST_F(PlotsOfFolders, PhasesAreTimesOfAStep) {
  const auto charts = charts_of(page_of(plot(lab::PlotKind::phases, "", {})));
  ASSERT_THAT(charts, SizeIs(1));
  EXPECT_EQ(charts[0]["kind"], "stack");
  EXPECT_EQ(charts[0]["x"]["categories"], nlohmann::json({"batch 64"}));
  // worker:0 by its summary 0.05 s in 200 steps, worker:1 by its log 0.04 s in 200
  EXPECT_NEAR(charts[0]["series"][0]["y"][0], (0.05 / 200 + 0.04 / 200) / 2, 1e-9);
}

TEST_F(PlotsOfFolders, TimelinesHaveARowForEachRole) {
  const auto charts = charts_of(page_of(plot(lab::PlotKind::timeline, "", {})));
  ASSERT_THAT(charts, SizeIs(1));
  EXPECT_THAT(charts[0]["rows"], SizeIs(3));
}

TEST_F(PlotsOfFolders, OtherRepeatsOfUsageAndTimelinesCanBeChosen) {
  const std::string second(testing::kMonitorCsv);
  testing::put_text(dir_.path() + "/two/monitor.csv", second.substr(0, second.find("1794787201.5")) +
                                                          "1794787201.5,1.5,390,93000000,3000000,1000000,70,\n");
  const nlohmann::json usage = charts_of(page_of(plot(lab::PlotKind::usage, "", {"cpu_percent"})))[0];
  EXPECT_EQ(usage["choice"], "repeat 1");
  ASSERT_THAT(usage["choices"], SizeIs(1));
  EXPECT_EQ(usage["choices"][0]["name"], "repeat 2");
  EXPECT_EQ(usage["series"][0]["y"][2], 90);
  EXPECT_EQ(usage["choices"][0]["series"][0]["y"][2], 390);
  EXPECT_EQ(usage["choices"][0]["series"][0]["name"], usage["series"][0]["name"]);
  EXPECT_EQ(usage["y"]["shows"], nlohmann::json({80, 390})) << "the axis is the same for both";
  const nlohmann::json timeline = charts_of(page_of(plot(lab::PlotKind::timeline, "", {})))[0];
  ASSERT_THAT(timeline["choices"], SizeIs(1));
  EXPECT_THAT(timeline["choices"][0]["rows"], SizeIs(3));
  EXPECT_THAT(timeline["choices"][0]["spans"], SizeIs(timeline["spans"].size()));
}

TEST_F(PlotsOfFolders, TheRepeatThatMostRunsHaveIsDrawnFirst) {
  results_.runs[0].state = lab::RunState::failed;
  results_.runs[2].plan.repeat = 2;
  const nlohmann::json usage = charts_of(page_of(plot(lab::PlotKind::usage, "", {"cpu_percent"})))[0];
  EXPECT_EQ(usage["choice"], "repeat 2");
  EXPECT_FALSE(usage.contains("choices"));
}

TEST_F(PlotsOfFolders, ARepeatWhoseFolderIsThereIsDrawnInPlaceOfOneThatIsGone) {
  std::filesystem::remove_all(dir_.path() + "/one");
  for (const lab::PlotKind kind : {lab::PlotKind::usage, lab::PlotKind::timeline}) {
    const auto charts = charts_of(page_of(plot(kind, "", {"cpu_percent"})));
    ASSERT_THAT(charts, SizeIs(1));
    EXPECT_EQ(charts[0]["choice"], "repeat 2");
    EXPECT_FALSE(charts[0].contains("choices"));
  }
}

TEST_F(PlotsOfFolders, ARepeatWithDataIsDrawnInPlaceOfOneWithout) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_.path() + "/one")) {
    if (entry.path().filename().string().starts_with("monitor")) std::filesystem::remove(entry.path());
  }
  const std::string page = page_of(plot(lab::PlotKind::usage, "", {"cpu_percent"}));
  ASSERT_THAT(charts_of(page), SizeIs(1));
  EXPECT_EQ(charts_of(page)[0]["choice"], "repeat 2");
  EXPECT_FALSE(has(page, "No monitor recorded"));
}

TEST_F(PlotsOfFolders, WithManyRepeatsNotAllComeAlong) {
  results_ = made_results({});
  for (int repeat = 1; repeat <= 30; ++repeat) {
    lab::RunResult run = testing::made_run(batch(64, 0.9, repeat));
    run.folder = dir_.path() + "/one";
    results_.runs.push_back(run);
  }
  const std::string page = page_of(plot(lab::PlotKind::usage, "", {"cpu_percent"}));
  EXPECT_THAT(charts_of(page)[0]["choices"], SizeIs(9));
  EXPECT_TRUE(has(page, "Of 30 repeats, 10 can be shown here."));
}

TEST_F(PlotsOfFolders, AreThereWithoutBeingAskedFor) {
  const auto charts = charts_of(html(results_));
  std::vector<std::string> titles;
  for (const auto& chart : charts) titles.push_back(chart["title"]);
  EXPECT_THAT(titles, ::testing::ElementsAre("Accuracy", "Loss", "Where the time of a step goes", "CPU of the nodes"));
}

TEST(Plot, CrowdedUsageHasAPanelForEachRun) {
  const lockstep::testing::TempDir dir;
  const auto page_of = [&](int runs) {
    std::vector<MadeRun> made;
    for (int i = 1; i <= runs; ++i) made.push_back(batch(8 * i, 0.5));
    lab::Results results = made_results(made);
    for (size_t i = 0; i < results.runs.size(); ++i) {
      results.runs[i].folder = fmt::format("{}/{}", dir.path(), i);
      lockstep::testing::write_cluster_run(results.runs[i].folder);
    }
    results.experiment.report.plots = {plot(lab::PlotKind::usage, "", {"cpu_percent"}),
                                       plot(lab::PlotKind::timeline, "", {})};
    results.experiment.report.plots[1].name = "timeline";
    return charts_of(html(results));
  };
  EXPECT_THAT(page_of(4)[0]["series"], SizeIs(8)) << "two roles with a monitor in each run";
  const nlohmann::json charts = page_of(5);
  ASSERT_THAT(charts, SizeIs(10));
  EXPECT_EQ(charts[4]["title"], "Batch 40");
  EXPECT_THAT(charts[4]["series"], SizeIs(2));
  EXPECT_EQ(charts[4]["y"]["shows"], charts[0]["y"]["shows"]);
  EXPECT_EQ(charts[5]["kind"], "timeline");
  EXPECT_EQ(charts[9]["x"]["shows"], charts[5]["x"]["shows"]) << "one time axis";
  EXPECT_THAT(charts[5]["x"]["shows"], SizeIs(2));
}

}  // namespace
}  // namespace lockstep::report
