// The limit of nesting in JSON, and a check that every reader uses it.
#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <sstream>

#include "base/temp_dir.h"

namespace lockstep::base {
namespace {

using lockstep::testing::get_file;
using lockstep::testing::message_of;
using ::testing::HasSubstr;

std::string nested(int levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(Json, NestsToTheLimitAndNoFurther) {
  EXPECT_TRUE(parse_json_or_discard(nested(kDeepestJson)).is_array());
  EXPECT_TRUE(parse_json_or_discard(nested(kDeepestJson + 1)).is_discarded());
  EXPECT_TRUE(parse_json_or_discard(nested(200'000)).is_discarded());
  EXPECT_EQ(message_of<DataError>([] { parse_json(nested(200'000), "f"); }), "f: is nested deeper than 64 levels");
  EXPECT_TRUE(parse_json_or_discard(std::string(200'000, ']') + nested(200'000)).is_discarded());
}

TEST(Json, BracketsInStringsAreText) {
  const std::string text = R"({"a":")" + std::string(100, '[') + R"(\"{\\"})";
  EXPECT_EQ(parse_json(text, "f")["a"], std::string(100, '[') + R"("{\)");
  const std::string list = "[" + text + ",";  // many siblings are not nesting
  std::string wide = "[";
  for (int i = 0; i < 1000; ++i) wide += "[],{},";
  EXPECT_EQ(parse_json(wide + "0]", "f").size(), 2001U);
  EXPECT_THAT(message_of<DataError>([&] { parse_json(list, "f"); }), HasSubstr("f: is not valid JSON: error at byte"));
}

TEST(Json, ErrorsNameTheFileAndThePlace) {
  EXPECT_EQ(message_of<DataError>([] { parse_json("", "f"); }), "f: is not valid JSON: it is empty");
  EXPECT_EQ(message_of<DataError>([] { parse_json("[1,}", "f"); }),
            R"(f: is not valid JSON: error at byte 4, in "[1,}")");
  EXPECT_EQ(message_of<DataError>([] { parse_json("[1e999]", "f"); }), "f: has a number that is too large");
}

/// Checks all sources of the library and the program: JSON from outside goes through base/json.h.
TEST(Json, IsParsedNowhereElse) {
  const std::regex raw("[Jj]son *::(parse|accept|sax_parse|from_[a-z]+) *\\(");
  int files = 0;
  for (const char* folder : {"/src", "/tools", "/include", "/examples"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(LOCKSTEP_SOURCE_DIR + std::string(folder))) {
      const std::string path = entry.path();
      if (!path.ends_with(".cpp") && !path.ends_with(".h")) continue;
      ++files;
      if (path.ends_with("/src/base/json.h")) continue;
      std::istringstream lines(get_file(path));
      int number = 0;
      for (std::string line; std::getline(lines, line);) {
        ++number;
        if (line.find("::") == std::string::npos || line.find("son") == std::string::npos) continue;
        EXPECT_FALSE(std::regex_search(line, raw)) << path << ":" << number << ": use base::parse_json";
      }
    }
  }
  EXPECT_GT(files, 100);
}

}  // namespace
}  // namespace lockstep::base
