#include "data/csv.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temp_dir.h"
#include "data/formats.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

using lockstep::testing::Bytes;
using lockstep::testing::gzip;
using lockstep::testing::message_of;
using lockstep::testing::put_file;
using lockstep::testing::TempDir;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Bytes bytes(std::string_view text) { return {text.begin(), text.end()}; }

CsvTable parse(std::string_view text, const std::string& label_column = "") {
  return parse_csv(bytes(text), "t.csv", label_column);
}

std::string error_of(std::string_view text, const std::string& label_column = "") {
  return message_of<DataError>([&] { parse(text, label_column); });
}

TEST(Csv, TheColumnNamedLabelHoldsTheLabels) {
  const CsvTable table = parse("a,Label,b\n1,0,2.5\n-3e2,1,.5\n");
  EXPECT_EQ(table.columns, 2);
  EXPECT_THAT(table.values, ElementsAre(1, 2.5F, -300, 0.5F));
  EXPECT_THAT(table.labels, ElementsAre(0, 1));
  EXPECT_THAT(table.class_names, IsEmpty());
  EXPECT_EQ(table.label_column, "column 'Label'");
}

TEST(Csv, OtherwiseTheLastColumnHoldsThem) {
  EXPECT_THAT(parse("1,2,3\n4,5,6\n").labels, ElementsAre(3, 6));
  EXPECT_THAT(parse("p,q,r\n1,2,3\n").labels, ElementsAre(3));
}

TEST(Csv, ALabelColumnIsChosenByNameOrNumberOrNotAtAll) {
  const char* text = "kind,a\n1,7\n0,8\n";
  EXPECT_THAT(parse(text, "KIND").values, ElementsAre(7, 8));
  EXPECT_THAT(parse(text, "1").labels, ElementsAre(1, 0));
  const CsvTable none = parse(text, "none");
  EXPECT_THAT(none.values, ElementsAre(1, 7, 0, 8));
  EXPECT_THAT(none.labels, IsEmpty());
  EXPECT_THAT(message_of<UsageError>([&] { parse(text, "sort"); }),
              HasSubstr("label-column 'sort': t.csv:1 has 2 columns and none of that name; a number from 1 to 2"));
  EXPECT_THAT(message_of<UsageError>([&] { parse(text, "3"); }), HasSubstr("label-column '3'"));
}

TEST(Csv, TextLabelsAreNumberedInSortedOrder) {
  const CsvTable table = parse("1,pear\n2,apple\n3,pear\n4,\"fig, dried\"\n");
  EXPECT_THAT(table.class_names, ElementsAre("apple", "fig, dried", "pear"));
  EXPECT_THAT(table.labels, ElementsAre(2, 0, 2, 1));
}

TEST(Csv, WholeNumbersThatPandasWroteAsFloatsAreLabels) {
  EXPECT_THAT(parse("1,2.0\n1,0.0\n").labels, ElementsAre(2, 0));
  EXPECT_THAT(parse("1,-1\n1,+1\n").class_names, ElementsAre("+1", "-1"));
}

TEST(Csv, FindsOutWhetherTheFirstLineNamesTheColumns) {
  EXPECT_EQ(parse("1,2,red\n3,4,blue\n").labels.size(), 2U);    // text in the first line only if the next line has text
  EXPECT_EQ(parse("1,2,label\n3,4,blue\n").labels.size(), 1U);  // names that are numbers
  EXPECT_EQ(parse("w,h,kind\n3,4,blue\n").labels.size(), 1U);   // text above numbers
  EXPECT_EQ(parse("5,6,colour\n3,4,blue\n", "colour").labels.size(), 1U);
}

TEST(Csv, TakesFilesAsOtherProgramsWriteThem) {
  const CsvTable table = parse("\xEF\xBB\xBF\"x\", y\r\n\r\n \"1.5\" ,\t2\r\n+3,\"\"\"4\"\"\"");
  EXPECT_THAT(table.values, ElementsAre(1.5F, 3));
  EXPECT_THAT(table.class_names, ElementsAre("\"4\"", "2"));
}

TEST(Csv, ErrorsNamePlaceValueAndWhatIsAllowed) {
  EXPECT_EQ(error_of("a,b,y\n1,2,0\n3,x,1\n"), "t.csv:3: column 'b': 'x' is not a number; finite numbers are allowed");
  EXPECT_EQ(error_of("1,0\n\n,1\n"), "t.csv:3: column 1: '' is not a number; finite numbers are allowed");
  EXPECT_THAT(error_of("1,0\nnan,1\n"), HasSubstr("t.csv:2: column 1: 'nan'"));
  EXPECT_THAT(error_of("1,0\n1e39,1\n"), HasSubstr("t.csv:2: column 1: '1e39' is too large"));
  EXPECT_EQ(error_of("1,2,0\n3,4\n"), "t.csv:2: 2 values; 3 are expected, as in line 1");
  EXPECT_EQ(error_of("a,y\n1,\n"), "t.csv:2: column 'y': no label");
  EXPECT_THAT(error_of("a,y\n\"1,0\n"), HasSubstr("t.csv:2: column 1: a quote without an end"));
  EXPECT_THAT(error_of("a,y\n\"1\"2,0\n"), HasSubstr("t.csv:2: column 1: '2' follows a closing quote"));
  EXPECT_EQ(error_of(" \n"), "t.csv: no examples: the file is empty");
  EXPECT_EQ(error_of("a,y\n"), "t.csv: no examples after the line of names");
  EXPECT_EQ(error_of("1;0\n2;1\n"), "t.csv:1: one column, which holds the labels; values must be separated by commas");
}

TEST(Csv, TextInUtf16IsSaidToBeThat) {
  const std::string_view little(
      "\xFF\xFE"
      "a\0,\0y\0\n\0"
      "1\0,\0"
      "0\0",
      16);
  const std::string_view unmarked = little.substr(2);
  EXPECT_EQ(error_of(little), "t.csv: text in UTF-16; CSV in UTF-8 is allowed: `iconv -f UTF-16 -t UTF-8` converts");
  EXPECT_THAT(error_of(unmarked), HasSubstr("its first line has zero bytes, as text in UTF-16 has; CSV in UTF-8"));
  EXPECT_THAT(error_of(std::string_view("a,y\n1\0,0\n", 9)), HasSubstr("'1?' is not a number"));
}

TEST(Csv, LinesMayEndInCarriageReturnsAlone) {
  const CsvTable table = parse("a,label\r1,0\r2,1\r\n3,2\n\r4,3");
  EXPECT_THAT(table.values, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(table.labels, ElementsAre(0, 1, 2, 3));
  std::string long_file = "a,label\r\n";
  for (int i = 0; i < 60000; ++i) long_file += std::string(static_cast<size_t>(i % 5), ' ') + "1,0\r\n";
  EXPECT_EQ(parse(long_file).labels.size(), 60000U) << "a pair across two buffers ends one line";
  EXPECT_THAT(error_of(long_file + "x,0\r\n"), HasSubstr("t.csv:60002: "));
}

TEST(Csv, NumbersTooSmallForFloatsAreZero) {
  EXPECT_THAT(parse("1e-400,0\n-1e-60,1\n0.25,1\n").values, ElementsAre(0, -0.0F, 0.25F));
  EXPECT_THAT(error_of("1,0\n1e400,1\n"), HasSubstr("'1e400' is too large; finite numbers up to 3.4e38 are allowed"));
}

TEST(Csv, ALabelColumnIsOneColumn) {
  EXPECT_EQ(error_of("label,a,Label\n1,2,0\n"),
            "t.csv:1: columns 1 and 3 are both called 'Label'; label-column chooses one by its number");
  EXPECT_THAT(error_of("a,b,a\n1,2,0\n", "A"), HasSubstr("columns 1 and 3"));
  EXPECT_THAT(parse("label,a,label\n1,2,0\n", "3").labels, ElementsAre(0));
  EXPECT_EQ(parse("x,y,label\n1,2,0\n").label_column, "column 'label'") << "y is a coordinate here";
}

TEST(Csv, AMissingLabelAmongNumbersIsNoClass) {
  EXPECT_THAT(error_of("a,label\n1,0\n2,NA\n3,1\n"), HasSubstr("t.csv:3: column 'label': 'NA' is no label"));
  EXPECT_THAT(error_of("1,nan\n2,4\n", "2"), HasSubstr("t.csv:1: column 2: 'nan' is no label"));
  EXPECT_THAT(parse("a,label\n1,none\n2,some\n").class_names, ElementsAre("none", "some"));
  EXPECT_THAT(parse("a,label\n1,none\n2,?\n").class_names, ElementsAre("?", "none"));
}

TEST(Csv, ManyDifferentTextsAreNotLabels) {
  std::string text;
  for (int i = 0; i < 10002; ++i) text += "1,a" + std::to_string(i) + "\n";
  EXPECT_THAT(error_of(text), HasSubstr("t.csv:10001: column 2: 'a10000' is one distinct label too many"));
}

TEST(Csv, AMeasuredQuantityIsNotALabel) {
  std::string text = "price,size\n";
  for (int i = 0; i < 101; ++i) text += fmt::format("{}.25,7\n", i);
  EXPECT_THAT(error_of(text, "price"), AllOf(HasSubstr("t.csv:102: column 'price'"), HasSubstr("'100.25'"),
                                             HasSubstr("more than 100 different numbers")));
  const std::string few = text.substr(0, text.rfind("100.25"));
  EXPECT_EQ(parse(few, "price").class_names.size(), 100U) << "few numbers may name classes";
  std::string whole = "price,size\n";
  for (int i = 0; i < 500; ++i) whole += fmt::format("{},7\n", i);
  EXPECT_EQ(parse(whole, "price").labels.back(), 499);
}

TEST(Csv, ReadsFilesPlainAndPacked) {
  const TempDir dir;
  put_file(dir / "a.csv", bytes("1,0\n2,1\n"));
  put_file(dir / "a.csv.gz", gzip(bytes("1,0\n2,1\n")));
  EXPECT_THAT(read_csv(dir / "a.csv").values, ElementsAre(1, 2));
  EXPECT_THAT(read_csv(dir / "a.csv.gz").values, ElementsAre(1, 2));
  EXPECT_THAT(message_of<IoError>([&] { read_csv(dir / "b.csv"); }), HasSubstr("b.csv"));
}

/// Lines that cross the reader's buffers.
TEST(Csv, LongFilesComeWhole) {
  std::string text = "a,b,label\n";
  for (int i = 0; i < 100000; ++i) text += std::to_string(i) + ",0.5," + std::to_string(i % 7) + "\n";
  const CsvTable table = parse(text);
  ASSERT_EQ(table.labels.size(), 100000U);
  for (size_t i = 0; i < 100000; ++i) {
    ASSERT_EQ(table.values[2 * i], static_cast<float>(i));
    ASSERT_EQ(table.labels[i], static_cast<int32_t>(i % 7));
  }
}

}  // namespace
}  // namespace lockstep::data
