// Charts as files, without a browser.
#include "chart/drawing.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <set>

#include "chart/canvas.h"
#include "chart/ticks.h"
#include "lockstep/error.h"

namespace lockstep::chart {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Chart line_chart() {
  Chart chart;
  chart.id = "plot";
  chart.title = "Accuracy & loss (mean)";
  chart.x = {"step", ""};
  chart.y = {"test accuracy", "share"};
  chart.series = {
      {.name = "a <b>", .x = {0, 100, 200}, .y = {0.5, NAN, 0.9}, .low = {0.4, NAN, 0.8}, .high = {0.6, NAN, 1}},
      {.name = "same", .x = {0, 100, 200}, .y = {0.5, NAN, 0.9}}};
  return chart;
}

std::vector<std::string> texts(const std::vector<Tick>& ticks) {
  std::vector<std::string> result;
  for (const Tick& tick : ticks) result.push_back(tick.text);
  return result;
}

TEST(Ticks, AreRoundAndCarryTheirUnit) {
  EXPECT_EQ(texts(linear_ticks(0, 1, 5, "share")),
            (std::vector<std::string>{"0 %", "20 %", "40 %", "60 %", "80 %", "100 %"}));
  EXPECT_EQ(texts(linear_ticks(0, 12000, 4, "")), (std::vector<std::string>{"0", "2,500", "5,000", "7,500", "10,000"}));
  EXPECT_EQ(texts(linear_ticks(0, 2, 5, "", true)), (std::vector<std::string>{"0", "1", "2"}))
      << "there is no half step";
  EXPECT_EQ(texts(linear_ticks(0, 0.004, 2, "s")), (std::vector<std::string>{"0 ms", "2 ms", "4 ms"}));
  EXPECT_EQ(texts(log_ticks(1, 1000, 4, "")), (std::vector<std::string>{"1", "10", "100", "1,000"}));
  EXPECT_TRUE(linear_ticks(1, 1, 5, "").empty());
  EXPECT_TRUE(linear_ticks(0.3, std::nextafter(0.3, 1), 5, "share").empty()) << "steps are below the rounding";
  EXPECT_EQ(value_text(0.91834, "share"), "91.83 %");
  EXPECT_EQ(value_text(1234567, ""), "1,234,567");
  EXPECT_EQ(value_text(3.1e8, "B/s"), "310 MB/s");
}

TEST(Drawing, AnSvgHasTheChosenWidthFontAndAllNames) {
  const std::string svg = drawn_as_svg(line_chart(), {.width_mm = 85, .font = "serif"});
  EXPECT_THAT(svg, HasSubstr("width=\"240.94pt\""));
  EXPECT_THAT(svg, HasSubstr("font-family=\"Times New Roman, Times, serif\""));
  for (const char* text : {">Accuracy &amp; loss (mean)<", ">a &lt;b&gt;<", ">same (same as a &lt;b&gt;)<",
                           ">test accuracy<", ">step<", ">100 %<", "stroke-dasharray"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(drawn_as_svg(line_chart(), {.title = false}), Not(HasSubstr(">Accuracy &amp; loss (mean)</text>")));
}

TEST(Drawing, APdfHasItsTextAndCorrectOffsets) {
  const std::string pdf = drawn_as_pdf(line_chart(), {.width_mm = 100, .font = "Courier"});
  EXPECT_TRUE(pdf.starts_with("%PDF-1.4\n"));
  EXPECT_THAT(pdf, HasSubstr("/BaseFont /Courier "));
  EXPECT_THAT(pdf, HasSubstr("(Accuracy & loss \\(mean\\)) Tj"));
  EXPECT_THAT(pdf, HasSubstr("/MediaBox [0 0 283.46 "));
  const size_t table = std::stoul(pdf.substr(pdf.find("startxref\n") + 10));
  ASSERT_EQ(pdf.substr(table, 7), "xref\n0 ");
  const std::regex entry("(\\d{10}) 00000 n ");
  int object = 0;
  for (auto found = std::sregex_iterator(pdf.begin() + static_cast<ptrdiff_t>(table), pdf.end(), entry);
       found != std::sregex_iterator(); ++found) {
    EXPECT_EQ(pdf.substr(std::stoul((*found)[1]), 7), fmt::format("{} 0 obj", ++object));
  }
  EXPECT_EQ(object, 7);
  const size_t begin = pdf.find("stream\n") + 7;
  EXPECT_THAT(pdf, HasSubstr(fmt::format("/Length {} ", pdf.find("endstream") - begin)));
}

TEST(Drawing, ValuesThatDifferByRoundingHaveARoundAxis) {
  Chart chart;
  chart.y = {"difference", ""};
  chart.series = {{.name = "up", .x = {1, 2}, .y = {0.3, std::nextafter(0.3, 1)}}};
  EXPECT_THAT(drawn_as_svg(chart, {}), HasSubstr(">0.30<"));
  chart.series = {{.name = "down", .x = {1, 2}, .y = {-1, -1}}};
  EXPECT_THAT(drawn_as_svg(chart, {}), HasSubstr(">−1.00<")) << "a flat negative line has an axis, too";
}

TEST(Drawing, EveryKindDrawsItsData) {
  Chart bars = line_chart();
  bars.kind = Kind::bar;
  bars.x.categories = {"one", "a rather long name of a case", "three"};
  for (Series& series : bars.series) series.x = {0, 1, 2};
  const std::string umlauts = "ääääääääääääääääääää";
  bars.x.categories[2] = umlauts;
  EXPECT_THAT(drawn_as_svg(bars, {}),
              AllOf(HasSubstr(">" + umlauts.substr(0, 30) + "…<"), Not(HasSubstr("\xEF\xBF\xBD"))));
  Chart stack = bars;
  stack.kind = Kind::stack;
  Chart timeline;
  timeline.kind = Kind::timeline;
  timeline.rows = {"worker:0"};
  timeline.x = {"time", "s"};
  timeline.spans = {{0, 1, 5, "trains"}};
  timeline.series = {{.name = "trains", .x = {}, .y = {}}, {.name = "serves", .x = {}, .y = {}}};
  timeline.marks = {{2, "kill worker:0"}};
  for (const Chart& chart : {bars, stack, timeline}) {
    const std::string svg = drawn_as_svg(chart, {});
    EXPECT_THAT(svg, HasSubstr("fill=\"#006ecd\"")) << svg;
    EXPECT_THAT(svg, Not(HasSubstr("nan"))) << svg;
    EXPECT_THAT(drawn_as_pdf(chart, {}), Not(HasSubstr("nan")));
  }
  EXPECT_THAT(drawn_as_svg(timeline, {}), HasSubstr("kill worker:0"));
  EXPECT_THAT(drawn_as_svg(timeline, {}), Not(HasSubstr("serves"))) << "no span has this name";
  EXPECT_THAT(drawn_as_svg(Chart{}, {}), HasSubstr("</svg>")) << "a chart without data";
}

TEST(Drawing, NamesOfMarksStandOnLevels) {
  Chart chart = line_chart();
  chart.marks = {{1, "cut node2"}, {1.01, "kill worker:1"}, {1.02, "node2 is back"}};
  const std::string svg = drawn_as_svg(chart, {});
  std::set<std::string> heights;
  for (const Mark& mark : chart.marks) {
    std::smatch found;
    ASSERT_TRUE(std::regex_search(svg, found, std::regex("y=\"([0-9.]+)\"[^>]*>" + mark.label + "<"))) << svg;
    heights.insert(found[1]);
  }
  EXPECT_EQ(heights.size(), 3U) << "one lies over another";
}

TEST(Drawing, ManyCategoriesAreUprightAndLeftOutRatherThanOverEachOther) {
  Chart bars = line_chart();
  bars.kind = Kind::bar;
  bars.x.categories.clear();
  for (int i = 0; i < 20; ++i) bars.x.categories.push_back(fmt::format("a rather long case {}", i));
  EXPECT_THAT(drawn_as_svg(bars, {.width_mm = 150}), HasSubstr("rotate(-35 "));
  const std::string narrow = drawn_as_svg(bars, {.width_mm = 60});
  EXPECT_THAT(narrow, AllOf(HasSubstr("rotate(-90 "), HasSubstr(">a rather long case 0<")));
  EXPECT_THAT(narrow, Not(HasSubstr(">a rather long case 1<")));
}

TEST(Drawing, RefusesWidthsAndFontsThatItCannotUse) {
  EXPECT_THROW((void)drawn_as_svg(line_chart(), {.width_mm = 5}), UsageError);
  EXPECT_THROW((void)drawn_as_svg(line_chart(), {.width_mm = NAN}), UsageError);
  EXPECT_THROW((void)drawn_as_svg(line_chart(), {.font = "x\"/><script>"}), UsageError);
  EXPECT_THROW((void)drawn_as_pdf(line_chart(), {.font = "Garamond"}), UsageError);
  EXPECT_THAT(drawn_as_svg(line_chart(), {.font = "Garamond"}), HasSubstr("font-family=\"Garamond, sans-serif\""));
}

TEST(Fonts, TextIsMeasuredAndEncoded) {
  const Font sans = font_called("sans");
  EXPECT_NEAR(text_width(sans, "Hello", 10), (722 + 556 + 222 + 222 + 556) * 0.01, 1e-9);
  EXPECT_EQ(in_win_ansi("5 µs × 2 – …"), "5 \xb5s \xd7 2 \x96 \x85");
  EXPECT_EQ(in_win_ansi("\xe6\xbc\xa2\xff"), "??") << "what the encoding lacks";
}

}  // namespace
}  // namespace lockstep::chart
