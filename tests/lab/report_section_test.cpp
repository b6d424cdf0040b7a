// Tables, plots and findings of experiment files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lab/experiments.h"
#include "lab/results.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::StartsWith;

/// Makes a file with one entry of the report, in line 4.
std::string with(const std::string& part, const std::string& entry) {
  return kBase + "cases: [{label: x, tags: {nodes: 1}}]\nreport: {" + part + ": [" + entry + "]}\n";
}

/// Makes a file with one finding, in line 4, and runs that differ in nodes, batch and mode.
std::string with_finding(const std::string& entry) {
  return kBase +
         "cases: [{label: x, tags: {nodes: 1}}, {label: y, batch: 7, tags: {nodes: 1}}, {label: z, lr: 0.2, tags: "
         "{nodes: 2}}, "
         "{label: a, tags: {nodes: 1}, workers: 2, ps: 1, mode: async}, "
         "{label: s, tags: {nodes: 1}, workers: 2, ps: 1, mode: sync}]\nreport: {findings: [" +
         entry + "]}\n";
}

TEST(ReportSection, ATableHasRowsColumnsAndAFilter) {
  const lab::Experiment made =
      parse(with("tables",
                 "{name: t, title: T, group: e, where: {lr: [0.10, 0.5], nodes: 1}, rows: [train-limit, nodes], "
                 "columns: [accuracy, seconds], per: worker}"));
  const lab::TableSpec& table = made.report.tables.at(0);
  EXPECT_THAT(table.rows, ElementsAre("train_limit", "nodes"));
  EXPECT_THAT(table.columns, ElementsAre("accuracy", "seconds"));
  EXPECT_THAT(table.filter.groups, ElementsAre("e"));
  EXPECT_THAT(table.filter.where, ElementsAre(Pair("lr", ElementsAre("0.1", "0.5")), Pair("nodes", ElementsAre("1"))));
  EXPECT_EQ(table.per, lab::Per::worker);
}

TEST(ReportSection, SlopesAndCurvesAreTests) {
  const lab::Experiment made =
      parse(with_finding("{name: f, says: s, tests: [{slope: seconds, over: nodes, at_least: -1.1, at_most: -0.9}, "
                         "{curve: accuracy, over: epoch, first: {nodes: 1}, second: {nodes: 2}, is: higher}]}"));
  const auto& tests = made.report.findings.at(0).tests;
  EXPECT_EQ(tests.at(0).kind, lab::TestKind::slope);
  EXPECT_EQ(tests[0].over, "nodes");
  EXPECT_EQ(tests[0].at_least, -1.1);
  EXPECT_EQ(tests.at(1).kind, lab::TestKind::curve);
  EXPECT_EQ(tests[1].over, "epoch");
  EXPECT_EQ(tests[1].is, "higher");
}

TEST(ReportSection, SlopesAndCurvesThatCannotBeTestedAreRefused) {
  const auto refused = [](const std::string& test) {
    return message_of<UsageError>(
        [&] { (void)parse(with("findings", "{name: f, says: s, tests: [{" + test + "}]}")); });
  };
  EXPECT_THAT(refused("slope: seconds, over: nodes"), HasSubstr("needs at_least or at_most"));
  EXPECT_THAT(refused("slope: secnds, over: nodes, at_least: 1"), HasSubstr("did you mean 'seconds'?"));
  EXPECT_THAT(refused("curve: seconds, over: epoch, first: {nodes: 1}, second: {nodes: 2}, is: same"),
              HasSubstr("curve: 'seconds' is not allowed"));
  EXPECT_THAT(refused("curve: loss, over: epochs, first: {nodes: 1}, second: {nodes: 2}, is: same"),
              HasSubstr("over: 'epochs' is not allowed (did you mean 'epoch'?)"));
  EXPECT_THAT(refused("curve: loss, over: epoch, first: {nodes: 1}, second: {nodes: 2}, is: less"),
              HasSubstr("is: 'less' is not allowed"));
}

TEST(ReportSection, AskingWhetherMeasuredValuesAreEqualIsRefused) {
  const auto spread = [](const std::string& field, const std::string& is, const std::string& within) {
    return with("findings",
                "{name: f, says: s, tests: [{spread: " + field + ", is: " + is + ", within: " + within + "}]}");
  };
  for (const char* is : {"apart", "together"}) {
    EXPECT_EQ(
        refusal(spread("seconds", is, "0")),
        "test.yaml:4:48: finding f: within: 0 asks whether values are equal, and no two measured values of seconds "
        "are; give a limit");
    EXPECT_NO_THROW((void)parse(spread("seconds", is, "0.01")));
    EXPECT_NO_THROW((void)parse(spread("accuracy", is, "0")));
    EXPECT_NO_THROW((void)parse(spread("iterations", is, "0")));
  }
}

TEST(ReportSection, PlotsTakeOneNameOrAList) {
  const lab::Experiment made = parse(with("plots",
                                          "{name: p, kind: lines, x: batch, y: accuracy, y2: [seconds], log_x: true}, "
                                          "{name: q, kind: curves, y: [loss, accuracy], per: worker}, "
                                          "{name: r, kind: usage, y: node_cpu_percent, roles: 'worker:0'}"));
  EXPECT_THAT(made.report.plots.at(0).y, ElementsAre("accuracy"));
  EXPECT_TRUE(made.report.plots.at(0).log_x);
  EXPECT_EQ(made.report.plots.at(1).x, "epoch");
  EXPECT_EQ(made.report.plots.at(2).kind, lab::PlotKind::usage);
}

TEST(ReportSection, FindingsHaveTests) {
  const lab::Experiment made = parse(
      with_finding("{name: f, says: S., explain: [wait_share], tests: [{compare: seconds, first: {mode: sync}, second: "
                   "{mode: async}, "
                   "is: greater, by: [batch], where: {nodes: 1}}, {ratio: seconds, first: {nodes: 1}, second: {nodes: "
                   "2}, at_most: 0.4}, "
                   "{trend: seconds, over: batch, is: falls, within: 0.1}, {most: seconds, over: label, is: x}]}"));
  const lab::FindingSpec& finding = made.report.findings.at(0);
  ASSERT_EQ(finding.tests.size(), 4U);
  EXPECT_EQ(finding.tests[0].first.where.size(), 2U) << "where is for both sides";
  EXPECT_THAT(finding.tests[0].second.where.at(1), Pair("mode", ElementsAre("async")));
  EXPECT_EQ(finding.tests[1].at_most, 0.4);
  EXPECT_EQ(finding.tests[2].within, 0.1);
  EXPECT_EQ(finding.tests[0].line, 4);
}

struct Wrong {
  std::string text;
  std::string message;  ///< how it begins
};
class RefusedReport : public ::testing::TestWithParam<Wrong> {};

TEST_P(RefusedReport, AtItsPlaceInOneLine) { EXPECT_THAT(refusal(GetParam().text), StartsWith(GetParam().message)); }

INSTANTIATE_TEST_SUITE_P(
    Report, RefusedReport,
    ::testing::Values(
        Wrong{kBase + "report: {table: []}\n",
              "test.yaml:3:10: unknown key 'table' of report (did you mean 'tables'?)"},
        Wrong{with("tables", "{rows: [batch], columns: [loss]}"), "test.yaml:4:19: a table needs a name"},
        Wrong{with("tables", "{name: t, rows: [batch], colums: [loss]}"), "test.yaml:4:44: unknown key 'colums'"},
        Wrong{with("tables", "{name: t, rows: [batch], columns: [acuracy]}"),
              "test.yaml:4:54: unknown field 'acuracy' (did you mean 'accuracy'?)"},
        Wrong{with("tables", "{name: t, rows: [accuracy], columns: [loss]}"),
              "test.yaml:4:36: unknown field 'accuracy'"},
        Wrong{with("tables", "{name: t, rows: [worker], columns: [loss]}"), "test.yaml:4:36: unknown field 'worker'"},
        Wrong{with("tables", "{name: t, rows: [batch]}"), "test.yaml:4:19: a table needs columns"},
        Wrong{with("tables", "{name: t, columns: [loss]}"), "test.yaml:4:19: a table needs rows"},
        Wrong{with("tables", "{name: t, group: f, rows: [batch], columns: [loss]}"),
              "test.yaml:4:36: unknown group 'f'"},
        Wrong{with("tables", "{name: t, where: {mode: snyc}, rows: [batch], columns: [loss]}"),
              "test.yaml:4:43: mode: 'snyc' is not allowed"},
        Wrong{with("tables", "{name: t, where: {with_server: no}, rows: [batch], columns: [loss]}"),
              "test.yaml:4:19: where: 'with_server' needs `per: worker` or `per: machine`"},
        Wrong{with("plots", "{name: p, kind: curves, y: loss, per: machine}"),
              "test.yaml:4:56: per: machine is only for tables, lines, bars and tests"},
        Wrong{with("tables", "{name: t, per: node, rows: [batch], columns: [loss]}"), "test.yaml:4:34: per: 'node'"},
        Wrong{with("tables", "{name: t, rows: [batch], columns: [loss], reported: no.csv}"),
              "test.yaml:4:71: reported: cannot open no.csv"},
        Wrong{with("tables", "{name: t, rows: [batch], columns: [loss], reported_where: {a: b}}"),
              "test.yaml:4:77: reported_where is only allowed with `reported`"},
        Wrong{with("plots", "{name: p, x: batch, y: loss}"), "test.yaml:4:18: a plot needs a kind"},
        Wrong{with("plots", "{name: p, kind: line, x: batch, y: loss}"),
              "test.yaml:4:34: kind: 'line' is not a kind of plot"},
        Wrong{with("plots", "{name: p, kind: lines, y: loss}"), "test.yaml:4:18: a plot of this kind needs x"},
        Wrong{with("plots", "{name: p, kind: curves, x: batch, y: loss}"), "test.yaml:4:45: x: 'batch' is not allowed"},
        Wrong{with("plots", "{name: p, kind: usage, y: cpu}"), "test.yaml:4:44: y: 'cpu' is not allowed"},
        Wrong{with("findings", "{name: f, says: S., tests: []}"), "test.yaml:4:48: tests is an empty list"},
        Wrong{with("findings", "{name: f, tests: [{value: loss, at_least: 1}]}"),
              "test.yaml:4:21: a finding needs `says`"},
        Wrong{with("findings", "{name: f, says: S., tests: [{compar: loss}]}"), "test.yaml:4:49: a test needs a kind"},
        Wrong{with("findings", "{name: f, says: S., tests: [{value: loss, most: loss}]}"),
              "test.yaml:4:49: a test is either value or most"},
        Wrong{with("findings", "{name: f, says: S., tests: [{value: loss}]}"),
              "test.yaml:4:49: the test needs at_least or"},
        Wrong{with("findings", "{name: f, says: S., tests: [{trend: loss, over: batch, is: up}]}"),
              "test.yaml:4:80: is: 'up' is not allowed"},
        Wrong{with("findings", "{name: f, says: S., tests: [{compare: los, is: less, first: {}, second: {}}]}"),
              "test.yaml:4:59: unknown field 'los' (did you mean 'loss'?)"}));

class Reported : public ::testing::Test {
 protected:
  void put(const std::string& text) {
    put_file(folder / "figures.csv", {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  }
  [[nodiscard]] lab::Experiment load(const std::string& keys) const {
    const std::string text = kBase +
                             "grid: {batch: [1, 2]}\nreport: {tables: [{name: t, rows: [batch], columns: [seconds, "
                             "accuracy], reported: figures.csv" +
                             keys + "}]}\n";
    return lab::parse_experiment(text, folder / "e.yaml", "");
  }
  TempDir folder;
};

TEST_F(Reported, ColumnsOfTheSameNameNeedNoNaming) {
  put("batch,seconds,acc\n1,2,3\n");
  const lab::Experiment made = load(", reported_columns: {accuracy: acc}");
  EXPECT_THAT(made.report.tables.at(0).reported_columns,
              ElementsAre(Pair("accuracy", "acc"), Pair("batch", "batch"), Pair("seconds", "seconds")));
  EXPECT_THAT(made.reported, ElementsAre(Pair("figures.csv", "batch,seconds,acc\n1,2,3\n")));
}

TEST_F(Reported, MissingColumnsAndLinesThatDoNotFitAreRefused) {
  put("batch,seconds\n1,2\n");
  EXPECT_THAT(message_of<UsageError>([&] { (void)load(", reported_columns: {accuracy: second}"); }),
              HasSubstr("figures.csv has no column 'second' (did you mean 'seconds'?)"));
  EXPECT_THAT(message_of<UsageError>([&] { (void)load(", reported_where: {mode: sync}"); }),
              HasSubstr("figures.csv has no column 'mode'"));
  put("batch,seconds\n1,2,3\n");
  EXPECT_THAT(message_of<UsageError>([&] { (void)load(""); }),
              HasSubstr("figures.csv:2: has 3 cells, but the first line has 2"));
  put("");
  EXPECT_THAT(message_of<UsageError>([&] { (void)load(""); }), HasSubstr("is empty"));
}

TEST(Filters, ValuesAreComparedAsNumbersAndSettingsThatAreNotGivenHaveTheirDefault) {
  lab::RunResult run;
  run.plan.group = "e";
  run.plan.settings = {{"lr", "0.5"}, {"mode", "async"}};
  run.plan.tags = {{"nodes", "3"}};
  const auto fits = [&](const std::string& field, const std::vector<std::string>& values) {
    return lab::passes(run, {{}, {{field, values}}});
  };
  EXPECT_TRUE(fits("lr", {"0.50"}));
  EXPECT_TRUE(fits("mode", {"sync", "async"}));
  EXPECT_FALSE(fits("mode", {"sync"}));
  EXPECT_TRUE(fits("nodes", {"3"}));
  EXPECT_TRUE(fits("workers", {"0"}));
  EXPECT_FALSE(fits("workers", {"2"}));
  EXPECT_FALSE(lab::passes(run, {{"other"}, {}}));
}

}  // namespace
}  // namespace lockstep::testing
