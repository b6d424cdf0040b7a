#include "records/csv_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/temp_dir.h"
#include "lockstep/error.h"
#include "records/format.h"
#include "records/statistics.h"

namespace lockstep::records {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsNan;
using testing::message_of;

std::string error_of(std::string_view text) {
  return message_of<DataError>([&] { (void)CsvTable::parse(text, "steps.csv"); });
}

TEST(CsvTable, NumbersAreFoundByTheNameOfTheirColumn) {
  const CsvTable table = CsvTable::parse("step,loss\n1,2.5\n2,-1e-3\r\n", "steps.csv");
  EXPECT_EQ(table.rows(), 2);
  EXPECT_THAT(table.column("loss"), ElementsAre(2.5, -1e-3));
  EXPECT_TRUE(table.has("step"));
  EXPECT_FALSE(table.has("accuracy"));
  EXPECT_TRUE(table.column("accuracy").empty());
}

TEST(CsvTable, AnEmptyFieldIsNotKnown) {
  const CsvTable table = CsvTable::parse("step,accuracy\n1,0.5\n2,\n", "steps.csv");
  EXPECT_THAT(table.column("accuracy"), ElementsAre(0.5, IsNan()));
  EXPECT_EQ(table.last("accuracy"), 0.5);
  EXPECT_THAT(table.last("loss"), IsNan());
}

TEST(CsvTable, ALastLineWithoutItsEndIsLeftOut) {
  EXPECT_EQ(CsvTable::parse("step,loss\n1,2\n2,3", "steps.csv").rows(), 1);
  EXPECT_EQ(CsvTable::parse("step,lo", "steps.csv").rows(), 0);
  EXPECT_EQ(CsvTable::parse("", "steps.csv").rows(), 0);
}

TEST(CsvTable, StrangeLinesAreNamedByFileAndLine) {
  EXPECT_EQ(error_of("step,loss\n1,2\n3\n"), "steps.csv:3: 1 values where the header has 2 names");
  EXPECT_EQ(error_of("step,loss\n1,2,3\n"), "steps.csv:2: 3 values where the header has 2 names");
  EXPECT_EQ(error_of("step,loss\n1,two\n"), "steps.csv:2: loss is 'two'; a number or nothing is allowed");
  EXPECT_EQ(error_of("step,loss\n1,2x\n"), "steps.csv:2: loss is '2x'; a number or nothing is allowed");
  EXPECT_EQ(error_of("step,loss\n\n1,2\n"), "steps.csv:2: an empty line");
  EXPECT_THAT(error_of("step,,loss\n"), HasSubstr("steps.csv:1: column 2 is called ''"));
  EXPECT_THAT(error_of("step,step\n"), HasSubstr("steps.csv:1: column 'step' appears twice"));
  EXPECT_THAT(error_of(std::string_view("\x7f"
                                        "ELF\x01\0\0\n",
                                        8)),
              HasSubstr("steps.csv:1: "));
  EXPECT_THAT(error_of(std::string(5000, ',') + "\n"), HasSubstr("steps.csv:1: "));
}

TEST(CsvTable, WhatFitsIsReadAroundWhatDoesNot) {
  std::string problem;
  const CsvTable table = CsvTable::parse_what_fits("step,loss\n1,2\nxx\n2,3\n4,\x01\n5,6\n", "a.csv", problem);
  EXPECT_THAT(table.column("step"), ElementsAre(1, 2, 5));
  EXPECT_EQ(problem, "a.csv:3: step is 'xx'; a number or nothing is allowed, and 1 more such lines");
}

TEST(CsvTable, ATimeMayBeText) {
  const CsvTable table = CsvTable::parse("time,seconds\n2026-11-16 00:30:17,1\n", "monitor.csv");
  EXPECT_THAT(table.column("time"), ElementsAre(IsNan()));
}

TEST(CsvTable, TablesWithOtherColumnsAreAppended) {
  CsvTable table = CsvTable::parse("a,b\n1,2\n", "1.csv");
  table.append(CsvTable::parse("b,c\n3,4\n5,6\n", "2.csv"));
  EXPECT_THAT(table.column("a"), ElementsAre(1, IsNan(), IsNan()));
  EXPECT_THAT(table.column("b"), ElementsAre(2, 3, 5));
  EXPECT_THAT(table.column("c"), ElementsAre(IsNan(), 4, 6));
}

TEST(Statistics, LeaveOutWhatIsNotKnown) {
  const std::vector<double> values{4, kUnknown, 1, 3, 2};
  EXPECT_EQ(mean(values), 2.5);
  EXPECT_EQ(sum(values), 10);
  EXPECT_EQ(largest(values), 4);
  EXPECT_EQ(percentile(values, 0.5), 2);
  EXPECT_EQ(percentile(values, 0.95), 4);
  EXPECT_EQ(percentile(values, 0), 1);
  const std::vector<double> nothing{kUnknown};
  EXPECT_THAT(mean(nothing), IsNan());
  EXPECT_THAT(largest(nothing), IsNan());
  EXPECT_THAT(percentile(nothing, 0.5), IsNan());
}

TEST(Statistics, FewerPointsKeepTheExtremes) {
  std::vector<double> x;
  std::vector<double> y;
  for (int i = 0; i < 10000; ++i) {
    x.push_back(i);
    y.push_back(i == 5003 ? 100 : i == 7777 ? -50 : std::sin(i * 0.01));
  }
  const Curve curve = downsampled(x, y, 100);
  EXPECT_LE(curve.size(), 100);
  EXPECT_GE(curve.size(), 50);
  EXPECT_EQ(largest(curve.y), 100);
  EXPECT_EQ(*std::min_element(curve.y.begin(), curve.y.end()), -50);
  EXPECT_TRUE(std::is_sorted(curve.x.begin(), curve.x.end()));
}

TEST(Statistics, FewPointsStayAsTheyAre) {
  const Curve curve = downsampled(std::vector<double>{1, 2, 3, 4}, std::vector<double>{5, kUnknown, 7, 8}, 100);
  EXPECT_THAT(curve.x, ElementsAre(1, 3, 4));
  EXPECT_THAT(curve.y, ElementsAre(5, 7, 8));
}

TEST(Format, NumbersAreAsLongAsTheyAreWorth) {
  EXPECT_EQ(share_text(0.716), "72 %");
  EXPECT_EQ(share_text(0.0431), "4.3 %");
  EXPECT_EQ(share_text(0), "0 %");
  EXPECT_EQ(time_text(0.00124), "1.24 ms");
  EXPECT_EQ(time_text(0.0000853), "85.3 us");
  EXPECT_EQ(time_text(0.0123), "12.3 ms");
  EXPECT_EQ(time_text(0.2974), "297 ms");
  EXPECT_EQ(time_text(75.26), "75.3 s");
  EXPECT_EQ(speed_text(3.1e8), "310 MB/s");
  EXPECT_EQ(amount_text(31512), "31.5 kB");
  EXPECT_EQ(count_text(1234567), "1,234,567");
  EXPECT_EQ(count_text(-1234), "-1,234");
  EXPECT_EQ(times_text(2.43), "2.4 times");
  EXPECT_EQ(times_text(0.456), "0.46 times");
  EXPECT_EQ(time_text(kUnknown), "?");
  EXPECT_EQ(count_text(1e300), "1e+300");
}

}  // namespace
}  // namespace lockstep::records
