#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "base/random.h"
#include "base/suggest.h"

namespace lockstep::base {
namespace {

TEST(Share, CoversEverythingOnceAndEvenly) {
  for (const int64_t count : {0, 1, 7, 64, 1000}) {
    for (const int parts : {1, 2, 3, 8}) {
      int64_t next = 0;
      for (int part = 0; part < parts; ++part) {
        const Range range = share(count, part, parts);
        EXPECT_EQ(range.begin, next);
        EXPECT_LE(range.size(), (count + parts - 1) / parts);
        EXPECT_GE(range.size(), count / parts);
        next = range.end;
      }
      EXPECT_EQ(next, count);
    }
  }
}

TEST(Sequence, DependsOnSeedStreamAndSubstream) {
  const auto first = [](uint64_t seed, uint64_t stream, uint64_t substream) {
    return Sequence(seed, stream, substream).next();
  };
  EXPECT_EQ(first(1, 2, 3), first(1, 2, 3));
  EXPECT_NE(first(1, 2, 3), first(2, 2, 3));
  EXPECT_NE(first(1, 2, 3), first(1, 3, 3));
  EXPECT_NE(first(1, 2, 3), first(1, 2, 4));
}

TEST(Sequence, BelowIsUniform) {
  Sequence random(1, 1);
  std::array<int, 7> seen{};
  for (int i = 0; i < 70'000; ++i) ++seen.at(random.below(7));
  for (const int count : seen) EXPECT_NEAR(count, 10'000, 500);
}

TEST(Suggest, NamesTheNearestOrAll) {
  const std::vector<std::string> allowed{"mnist", "fashion-mnist"};
  EXPECT_EQ(hint("mnits", allowed), " (did you mean 'mnist'?)");
  EXPECT_EQ(hint("imagenet-1k", allowed), " (allowed: mnist, fashion-mnist)");
}

}  // namespace
}  // namespace lockstep::base
