// A server with many workers: as many threads as with few, while their pushes wait for each other.
#include "many_workers.h"

namespace lockstep::ps {
namespace {

using testing::kFew;
using testing::ManyWorkers;

TEST(ManyWorkers, SixtyFourNeedNoMoreThreadsThanFour) { testing::serve(64); }

/// A push that arrives while another one's update is under way is applied after it, though nobody pushes any more.
TEST(ManyWorkers, EachIsAnsweredWhenTheirPushesMeet) {
  constexpr uint64_t kRounds = 500;
  ManyWorkers workers(kFew, false);
  while (!workers.all_here()) workers.come();
  uint64_t applied = 0;
  for (uint64_t round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < kFew; ++i) workers.push(i, round);
    for (size_t i = 0; i < kFew; ++i) applied += workers.answer(i).applied() ? 1 : 0;
  }
  EXPECT_EQ(workers.version(), applied);
  EXPECT_GT(applied, kRounds);
}

}  // namespace
}  // namespace lockstep::ps
