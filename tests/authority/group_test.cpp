// The text form of groups, and the register's rule.
#include "authority/group.h"

#include <gtest/gtest.h>

#include "authority/cell.h"

namespace lockstep::authority {
namespace {

TEST(Group, ComesBackFromItsText) {
  const Group none;
  const Group some{7, 0x3f2ab4c1d2e3f405, {{0, 0x1a2b}, {2, 0xffffffffffffffff}, {99'999, 0}}};
  EXPECT_EQ(text_of(none), "0 0 -");
  EXPECT_EQ(text_of(some), "7 3f2ab4c1d2e3f405 0:1a2b,2:ffffffffffffffff,99999:0");
  EXPECT_EQ(parse_group(text_of(none)), none);
  EXPECT_EQ(parse_group(text_of(some)), some);
}

TEST(Group, OtherTextsAreNoGroups) {
  for (const char* text : {"",
                           "7",
                           "7 ",
                           "7 1",
                           "7 1 ",
                           "x 1 -",
                           "-1 1 -",
                           "+1 1 -",
                           "07 1 -",
                           "7 0x1 -",
                           "7 AB -",
                           "7 g -",
                           "7  1 -",
                           "7 1 - ",
                           "7 1 --",
                           "7 1 0",
                           "7 1 0:",
                           "7 1 0:1,",
                           "7 1 0:1,0:1",
                           "7 1 2:1,1:1",
                           "7 1 -1:1",
                           "7 1 100000:1",
                           "7 1 0:1 ",
                           "7 1 0:1;1:1",
                           "18446744073709551616 1 -",
                           "7 10000000000000000 -",
                           "7 1 99999999999:1",
                           "7 1 0:01"}) {
    EXPECT_FALSE(parse_group(text).has_value()) << text;
  }
}

TEST(Cell, OneOfTwoSwapsFromTheSameGroupWins) {
  Cell cell;
  const Group first{1, 11, {{0, 1}}};
  const Group other{1, 12, {{1, 1}}};
  EXPECT_EQ(cell.swap({}, first).outcome, Outcome::won);
  const Answer lost = cell.swap({}, other);
  EXPECT_EQ(lost.outcome, Outcome::lost);
  EXPECT_EQ(lost.group, first);
  EXPECT_EQ(cell.swap(other, {2, 13, {{1, 1}}}).outcome, Outcome::lost);
  EXPECT_EQ(cell.swap(first, {2, 14, {{0, 1}}}).outcome, Outcome::won);
}

TEST(Cell, TheSameSwapWinsAgainUntilAnotherFollows) {
  Cell cell;
  const Group first{1, 11, {{0, 1}}};
  EXPECT_EQ(cell.swap({}, first).outcome, Outcome::won);
  EXPECT_EQ(cell.swap({}, first).outcome, Outcome::won);
  EXPECT_EQ(cell.swap(first, {2, 12, {{0, 1}}}).outcome, Outcome::won);
  EXPECT_EQ(cell.swap({}, first).outcome, Outcome::lost);
}

TEST(Cell, RefusesWhatIsNoNextGroup) {
  Cell cell;
  EXPECT_EQ(cell.swap({2, 1, {{0, 1}}}, {2, 3, {{0, 1}}}).outcome, Outcome::refused);
  EXPECT_EQ(cell.swap({}, {1, 0, {{0, 1}}}).outcome, Outcome::refused);
  EXPECT_EQ(cell.swap({}, {1, 1, {}}).outcome, Outcome::refused);
  EXPECT_EQ(cell.swap({2, 1, {{0, 1}}}, {1, 3, {{0, 1}}}).failure.text, "group 1 cannot follow group 2: numbers rise");
  EXPECT_EQ(cell.group(), Group{});
}

}  // namespace
}  // namespace lockstep::authority
