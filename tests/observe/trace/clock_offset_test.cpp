#include "base/clock_offset.h"

#include <gtest/gtest.h>

#include <random>

namespace lockstep::base {
namespace {

constexpr int64_t kNow = 1'800'000'000'000'000'000;

/// Exchanges requests and answers between two clocks; the other one is `ahead`, and each way takes at least `delay`
/// plus jitter.
ClockOffset after_messages(int64_t ahead, int64_t delay, int64_t jitter, int messages) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<int64_t> more(0, jitter);
  ClockOffset offset;
  int64_t here = kNow;
  for (int i = 0; i < messages; ++i, here += 1'000'000) {
    const int64_t there = here + ahead + delay + more(random);
    offset.sent(here, there);
    const int64_t answered = there + 50'000;
    offset.came(answered, answered - ahead + delay + more(random));
  }
  return offset;
}

TEST(ClockOffset, IsKnownToWithinTheQuickestMessages) {
  for (const int64_t ahead :
       {INT64_C(-5'000'000'000), INT64_C(-700'000), INT64_C(900'000), INT64_C(3'600'000'000'000)}) {
    const auto found = after_messages(ahead, 20'000, 5'000'000, 1000).nanoseconds();
    ASSERT_TRUE(found.has_value());
    EXPECT_NEAR(static_cast<double>(*found), static_cast<double>(ahead), 40'000);
  }
}

TEST(ClockOffset, ContradictsNoMessage) {
  // All requests were slow and answers quick: a request still arrives after it was sent.
  ClockOffset offset;
  offset.sent(kNow, kNow + 1'000'000 + 900'000);
  offset.came(kNow + 2'500'000, kNow + 1'500'000 + 10'000);
  ASSERT_TRUE(offset.nanoseconds().has_value());
  EXPECT_LE(*offset.nanoseconds(), 1'900'000);
  EXPECT_GE(*offset.nanoseconds(), 990'000);
}

TEST(ClockOffset, OfOneMachineIsNone) { EXPECT_EQ(after_messages(0, 20'000, 100'000, 10).nanoseconds(), 0); }

TEST(ClockOffset, OfOneMachineIsNoneWhateverBothSaw) {
  ClockOffset offset = after_messages(0, 20'000, 100'000, 10);
  for (int64_t i = 0; i < 21; ++i) offset.saw(kNow + i, kNow + i + 12'000);
  EXPECT_EQ(offset.nanoseconds(true), 0);
  offset.came(kNow + 1'000'000, kNow + 995'000);  // the clocks differ anyway, because one was set
  ASSERT_TRUE(offset.nanoseconds(true).has_value());
  EXPECT_GE(*offset.nanoseconds(true), 5'000);
}

TEST(ClockOffset, IsUnknownWithoutMessagesBothWays) {
  ClockOffset offset;
  EXPECT_FALSE(offset.nanoseconds().has_value());
  offset.sent(kNow, kNow + 5);
  EXPECT_FALSE(offset.nanoseconds().has_value());
}

TEST(ClockOffset, MomentsThatBothSawCountMoreThanWideBounds) {
  ClockOffset offset;
  offset.sent(kNow, kNow + 10'000'000 + 20'000);
  offset.came(kNow, kNow - 10'000'000 + 30'000'000);  // it always waited for someone
  for (int64_t i = 0; i < 21; ++i) offset.saw(kNow + i, kNow + i + 10'000'000 + (i % 3 - 1) * 1000);
  EXPECT_EQ(offset.nanoseconds(), 10'000'000);
}

TEST(ClockOffset, TimesThatMakeNoSenseAreNotBelieved) {
  ClockOffset offset = after_messages(1'000'000, 1000, 1000, 10);
  const auto before = offset.nanoseconds();
  for (const int64_t time : {INT64_MIN, INT64_C(-1), INT64_C(0), INT64_MAX}) {
    offset.sent(kNow, time);
    offset.came(time, kNow);
    offset.saw(kNow, time);
  }
  EXPECT_EQ(offset.nanoseconds(), before);
}

}  // namespace
}  // namespace lockstep::base
