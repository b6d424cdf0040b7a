// Columns of CSV files that other programs wrote.
#include "guest/csv_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/temp_dir.h"
#include "lockstep/error.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal_of(const std::string& text) {
  return message_of<DataError>([&] { (void)guest::parse_columns(text, {"loss"}, "log.csv"); });
}

TEST(CsvColumns, QuotedCellsAndOtherColumnsAreNotInTheWay) {
  const auto columns = guest::parse_columns("name,\"the \"\"loss\"\"\",step\r\n\"a,b\", 0.5 ,1\n\nc,,\"2\"\n",
                                            {"step", "the \"loss\""}, "log.csv");
  EXPECT_THAT(columns[0], ElementsAre(1, 2));
  EXPECT_EQ(columns[1][0], 0.5);
  EXPECT_TRUE(std::isnan(columns[1][1]));
}

TEST(CsvColumns, ALastLineThatIsStillWrittenIsLeftOut) {
  EXPECT_THAT(guest::parse_columns("loss,step\n1,2\n3", {"loss"}, "log.csv")[0], ElementsAre(1));
  EXPECT_THAT(guest::parse_columns("loss,step\n1,2\n3,4", {"loss"}, "log.csv")[0], ElementsAre(1, 3));
}

TEST(CsvColumns, WhatDoesNotFitIsOneLineWithItsPlace) {
  EXPECT_THAT(refusal_of(""), HasSubstr("log.csv: is empty"));
  EXPECT_THAT(refusal_of("los,step\n"), HasSubstr("log.csv:1: has no column 'loss' (did you mean 'los'?)"));
  EXPECT_THAT(refusal_of("loss,step\n1,2\n3\n"), HasSubstr("log.csv:3: has 1 cells, but the first line has 2"));
  EXPECT_THAT(refusal_of("loss\n1\nx\n"), HasSubstr("log.csv:3: loss: 'x' is not a number"));
  EXPECT_THAT(refusal_of("loss\n\"1\n"), HasSubstr("log.csv:2: has a quote without end"));
  EXPECT_THAT(refusal_of("loss\n\"1\"2\n"), HasSubstr("log.csv:2: has text after a quoted cell"));
  EXPECT_THAT(refusal_of("loss" + std::string(2000, ',') + "\n"), HasSubstr("log.csv:1: has more than 1000 cells"));
}

}  // namespace
}  // namespace lockstep::testing
