// Tables and plots of a report as files.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "made_results.h"
#include "report/exports.h"
#include "report/tables.h"

namespace lockstep::report {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::made_results;
using testing::MadeRun;

MadeRun run_of(const std::string& label, double accuracy, int repeat) {
  return {.varied = {{"batch", label}}, .values = {{"accuracy", accuracy}, {"epoch_seconds", 1.25}}, .repeat = repeat};
}

lab::Results results_of(const std::string& label) {
  lab::Results results = made_results({run_of(label, 0.90, 1), run_of(label, 0.92, 2)});
  lab::TableSpec spec;
  spec.name = "By batch";
  spec.title = "50 % & more_of_it";
  spec.rows = {"batch"};
  spec.columns = {"accuracy", "epoch_seconds"};
  spec.reported = "r.csv";
  spec.reported_columns = {{"accuracy", "accuracy_percent"}, {"batch", "batch"}};
  results.experiment.reported = {{"r.csv", "batch,accuracy_percent\n" + label + ",91.5\n"}};
  results.experiment.report.tables = {spec};
  return results;
}

std::string only(const lab::Results& results, FileFormat format) {
  const std::vector<ExportFile> files = table_files(results, format);
  EXPECT_EQ(files.size(), 1U);
  EXPECT_EQ(files.at(0).name, fmt::format("table-by-batch.{}", ending(format)));
  return files.at(0).text;
}

TEST(TableFiles, CsvHasUnroundedFiguresAndTheirIntervals) {
  EXPECT_EQ(
      only(results_of("64"), FileFormat::csv),
      "batch size,\"test accuracy (%), measured\",\"± test accuracy (%), measured\",\"test accuracy (%), reported\","
      "\"test accuracy (%), difference\",time of an epoch (s),± time of an epoch (s),runs\n"
      "64,91,12.7062047,91.5,-0.50 pp,1.25,0,2\n");
}

TEST(TableFiles, LatexIsEscapedAndHasRulesOfBooktabs) {
  const std::string tex = only(results_of("a_b & 5%"), FileFormat::latex);
  for (const char* text : {"\\caption{50 \\% \\& more\\_of\\_it}", "\\begin{tabular}{lrrrrr}", "\\toprule",
                           "\\cmidrule(lr){2-4}", "\\multicolumn{3}{c}{test accuracy (\\%)}",
                           "a\\_b \\& 5\\% & 91.00 $\\pm$ 12.71 & 91.50 & -0.50 pp & ", "\\bottomrule"}) {
    EXPECT_THAT(tex, HasSubstr(text));
  }
}

TEST(TableFiles, MarkdownKeepsItsColumns) {
  const std::string markdown = only(results_of("a|b"), FileFormat::markdown);
  EXPECT_THAT(markdown, HasSubstr("| a\\|b | 91.00 ± 12.71 | 91.50 | -0.50 pp |"));
  EXPECT_THAT(markdown, HasSubstr("| :--- | ---: | ---: | ---: | ---: | ---: |"));
}

TEST(Files, NamesThatDifferInSignsOnlyHaveFilesOfTheirOwn) {
  lab::Results results = results_of("64");
  for (const char* name : {"By-batch", "by batch!"}) {
    results.experiment.report.tables.push_back(results.experiment.report.tables[0]);
    results.experiment.report.tables.back().name = name;
  }
  std::vector<std::string> names;
  for (const ExportFile& file : table_files(results, FileFormat::csv)) names.push_back(file.name);
  EXPECT_THAT(names, ::testing::ElementsAre("table-by-batch.csv", "table-by-batch-n2.csv", "table-by-batch-n3.csv"));
}

TEST(PlotFiles, EachChartIsAFile) {
  lab::Results results = results_of("64");
  lab::PlotSpec bars;
  bars.name = "Two kinds";
  bars.kind = lab::PlotKind::bars;
  bars.x = "batch";
  bars.y = {"accuracy", "epoch_seconds"};
  results.experiment.report.plots = {bars};
  std::vector<std::string> notes;
  const std::vector<ExportFile> files = plot_files(results, FileFormat::svg, {}, notes);
  ASSERT_EQ(files.size(), 2U) << "a chart for each unit";
  EXPECT_EQ(files[1].name, "plot-two-kinds-2.svg");
  EXPECT_THAT(files[0].text, HasSubstr(">test accuracy</text>"));
  EXPECT_TRUE(plot_files(results, FileFormat::pdf, {}, notes)[0].text.starts_with("%PDF"));
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_THROW((void)plot_files(results, FileFormat::pdf, {.font = "Garamond"}, notes), UsageError);
  results.runs[0].state = lab::RunState::planned;
  results.experiment.report.plots.push_back(bars);
  (void)plot_files(results, FileFormat::svg, {}, notes);
  EXPECT_THAT(notes, ::testing::ElementsAre(HasSubstr("1 run is missing"))) << "once for both plots";
}

}  // namespace
}  // namespace lockstep::report
