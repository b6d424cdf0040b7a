// The words of commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temp_dir.h"
#include "guest/guest_run.h"
#include "lockstep/error.h"

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Words, AreSplitAsAShellDoes) {
  EXPECT_THAT(guest::words_of(R"( python3  a\ b.py --x='1 "2"' "it's \"so\"" '' )"),
              ElementsAre("python3", "a b.py", "--x=1 \"2\"", "it's \"so\"", ""));
  EXPECT_THAT(message_of<UsageError>([] { (void)guest::words_of("echo 'a"); }), HasSubstr("has a ' without end"));
  EXPECT_THAT(message_of<UsageError>([] { (void)guest::words_of("  "); }), HasSubstr("is empty"));
}

TEST(Words, NamesInBracesAreFilledIn) {
  const std::vector<std::pair<std::string, std::string>> values{{"batch", "32"}, {"options.pool", "avg"}};
  EXPECT_THAT(
      guest::filled_in({"--batch={batch}", "{options.pool}{batch}", "{{batch}", "{not a name}", "{", "{}"}, values),
      ElementsAre("--batch=32", "avg32", "{batch}", "{not a name}", "{", "{}"));
  EXPECT_THAT(message_of<UsageError>([&] { (void)guest::filled_in({"--b={bach}"}, values); }),
              HasSubstr("'{bach}' in '--b={bach}' is neither a setting of this run nor a name of a role (did you mean "
                        "'batch'?)"));
}

TEST(Words, DeadlinesHaveUnitsAndLimits) {
  EXPECT_EQ(guest::parse_deadline("90", "deadline"), 90);
  EXPECT_EQ(guest::parse_deadline("10m", "deadline"), 600);
  EXPECT_EQ(guest::parse_deadline("2h", "deadline"), 7200);
  for (const char* wrong : {"", "0", "-1s", "soon", "8d", "1e9h", "nan"}) {
    EXPECT_THAT(message_of<UsageError>([&] { (void)guest::parse_deadline(wrong, "deadline"); }),
                HasSubstr("deadline: '"));
  }
}

}  // namespace
}  // namespace lockstep::testing
