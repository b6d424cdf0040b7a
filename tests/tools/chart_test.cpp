// Curves, and tables of a run, in a terminal.
#include "terminal/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/temp_dir.h"
#include "display/run_tables.h"
#include "records/run_folders.h"
#include "terminal/text.h"

namespace lockstep::tools {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr terminal::Terminal kPlain{.interactive = false, .colours = false, .unicode = false};
constexpr terminal::Terminal kUnicode{.interactive = false, .colours = false, .unicode = true};
constexpr terminal::Terminal kColours{.interactive = true, .colours = true, .unicode = true};

const std::vector<terminal::Series> kRise{{"up", {{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}}}};
const std::vector<terminal::Series> kCross{{"up", {{0, 4}, {0, 4}}}, {"down", {{0, 4}, {4, 0}}}};

terminal::ChartOptions small() { return {.title = "loss", .x_label = "steps", .width = 20, .height = 5}; }

std::vector<std::string> trimmed(std::vector<std::string> lines) {
  for (std::string& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  return lines;
}

TEST(Chart, AsLettersOneSignPerCurve) {
  EXPECT_THAT(trimmed(terminal::line_chart(kPlain, kCross, small())),
              ElementsAre("loss  ** up  ++ down",  //
                          "4 ++++           ***",  //
                          "  |   ++++   ****",     //
                          "2 +       +++",         //
                          "  |   ****   ++++",     //
                          "0 +***           +++",  //
                          "   0     steps     4"));
}

TEST(Chart, OneCurveInBrailleHasEightDotsACharacter) {
  EXPECT_THAT(trimmed(terminal::line_chart(kUnicode, kRise, small())),
              ElementsAre("loss  ⠒⠒ up",           //
                          "4 ┤              ⡠⠔⠊",  //
                          "  │          ⣀⠤⠒⠉",     //
                          "2 ┤       ⣀⠴⠉",         //
                          "  │   ⣀⠤⠒⠉",            //
                          "0 ┤⡠⠔⠊⠁",               //
                          "   0     steps     4"));
}

TEST(Chart, SeveralCurvesAreInBrailleWhereColoursTellThemApart) {
  const auto lines = terminal::line_chart(kColours, kCross, small());
  EXPECT_THAT(lines[1], HasSubstr("\x1b[36m"));
  EXPECT_THAT(lines[1], HasSubstr("\x1b[33m"));
  EXPECT_THAT(lines[1], Not(HasSubstr("+")));
  EXPECT_THAT(terminal::line_chart(kUnicode, kCross, small())[1], HasSubstr("++"));
}

TEST(Chart, EveryLineIsAsWideAsAskedFor) {
  terminal::Series wave{"wave", {}};
  for (int i = 0; i < 1000; ++i) {
    wave.curve.x.push_back(i * 1000.0);
    wave.curve.y.push_back(std::sin(i * 0.05) * 1e4);
  }
  for (const terminal::Terminal& terminal : {kPlain, kUnicode, kColours}) {
    for (size_t width = 60; width <= 200; width += 7) {
      terminal::ChartOptions options = small();
      options.width = width;
      options.height = 8;
      for (const std::string& line : terminal::line_chart(terminal, {wave, wave}, options))
        EXPECT_EQ(terminal::display_width(line), width);
    }
  }
}

TEST(Chart, NothingToDrawIsNoLines) {
  EXPECT_THAT(terminal::line_chart(kPlain, {}, small()), IsEmpty());
  EXPECT_THAT(terminal::line_chart(kPlain, {{"none", {}}}, small()), IsEmpty());
}

TEST(Chart, OddCurvesAreDrawnToo) {
  const double huge = std::numeric_limits<double>::max();
  for (const records::Curve& curve : std::vector<records::Curve>{
           {{1}, {5}}, {{1, 1}, {0, 0}}, {{0, 1}, {-huge, huge}}, {{-huge, huge}, {1, 2}}, {{0, 1}, {5e-324, 0}}}) {
    const auto lines = terminal::line_chart(kUnicode, {{"odd", curve}}, small());
    EXPECT_EQ(lines.size(), 7);
  }
}

TEST(Chart, OnePointHasNoScale) {
  EXPECT_THAT(trimmed(terminal::line_chart(kPlain, {{"", {{300}, {0.9}}}}, small())),
              ElementsAre("loss", "    |", "    |", "0.9 +*", "    |", "    |", "     300   steps"));
}

TEST(Chart, BlocksAreBesideEachOtherWhereTheyFit) {
  EXPECT_EQ(terminal::beside({"ab", "c"}, {"x", "y", "z"}, 7), "ab    x\nc     y\n      z\n");
  EXPECT_EQ(terminal::beside({"ab", "c"}, {"x"}, 6), "ab\nc\n\nx\n");
  EXPECT_EQ(terminal::beside({}, {"x"}, 80), "x\n");
}

TEST(Chart, TheLegendIsWrapped) {
  EXPECT_THAT(terminal::chart_legend(kPlain, {"lr-1", "lr-2", "lr-3"}, 18), ElementsAre("** lr-1  ++ lr-2", "oo lr-3"));
}

TEST(Sparkline, GoesFromTheLowestToTheHighest) {
  const std::vector<double> values{0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(terminal::sparkline(kUnicode, values, 8), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(terminal::sparkline(kPlain, values, 8), "_.-~=+*#");
  EXPECT_EQ(terminal::sparkline(kPlain, values, 2), "_#");
  EXPECT_EQ(terminal::sparkline(kPlain, std::vector<double>{3, 3}, 8), "__");
  EXPECT_EQ(terminal::sparkline(kPlain, {}, 8), "");
}

TEST(StackedBar, FillsItsColumnsByShares) {
  const std::vector<terminal::BarPart> parts{{'f', 0.25, 0}, {'b', 0.5, 1}, {'z', 0, 2}, {'.', 0.25, 3}};
  EXPECT_EQ(terminal::stacked_bar(kPlain, parts, 8), "ffbbbb..");
  EXPECT_EQ(terminal::stacked_bar(kUnicode, parts, 4), "fbb.");
  EXPECT_EQ(terminal::stacked_bar(kColours, parts, 4), "\x1b[36m█\x1b[0m\x1b[33m██\x1b[0m\x1b[35m█\x1b[0m");
  EXPECT_EQ(terminal::stacked_bar(kPlain, {{'a', 3, 0}}, 5), "aaaaa");
}

TEST(RoleTable, RatesOfWorkersAddUpToThatOfTheRun) {
  const testing::TempDir folder;
  testing::write_cluster_run(folder.path());
  std::string summary = testing::get_file(folder / "summary.json");
  // Both workers still evaluate when they have finished, as the run does.
  for (size_t at = summary.find("\"finished_seconds\": 0.5"); at != std::string::npos;
       at = summary.find("\"finished_seconds\": 0.5,", at)) {
    summary.replace(at, 23, "\"finished_seconds\": 0.54");
  }
  testing::put_text(folder / "summary.json", summary);
  const std::string table = display::role_table(kPlain, records::read_run(folder.path()), 200);
  EXPECT_THAT(table, AllOf(ContainsRegex("worker:0.* 40,000 "), ContainsRegex("worker:1.* 40,000 "))) << table;
}

}  // namespace
}  // namespace lockstep::tools
