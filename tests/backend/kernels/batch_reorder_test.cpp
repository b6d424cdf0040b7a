#include "backend/cpu/kernels/batch_reorder.h"

#include <gtest/gtest.h>

#include "backend/cpu/kernels/batch_layout.h"
#include "support.h"

namespace lockstep::backend::cpu {
namespace {

TEST(BatchReorder, GoesToBlocksWithZerosInPadLanesAndBack) {
  for (const int64_t batch : {4, 5, 8, 13, 16, 20, 33, 64, 100}) {
    for (const int64_t rest : {1, 2, 3, 7, 15, 16, 17, 31, 100, 784}) {
      for (const int threads : {1, 2}) {
        SCOPED_TRACE(::testing::Message() << batch << " x " << rest << ", " << threads << " threads");
        const int lanes = batch_lanes(batch);
        Buffer plain = random_buffer(batch * rest, static_cast<uint64_t>(batch * rest), -1, 1, 1);
        Buffer blocked = random_buffer(batch_blocked_size(batch, rest, lanes), 5);
        to_batch_blocked(lanes, batch, rest, plain.data(), blocked.data(), threads);
        for (int64_t n = 0; n < batch_blocks(batch, lanes) * lanes; ++n) {
          for (int64_t i = 0; i < rest; ++i) {
            const float seen = blocked[(n / lanes * rest + i) * lanes + n % lanes];
            ASSERT_EQ(seen, n < batch ? plain[n * rest + i] : 0.0F) << n << ", " << i;
          }
        }
        Buffer back(batch * rest, 1);
        from_batch_blocked(lanes, batch, rest, blocked.data(), back.data(), threads);
        for (int64_t i = 0; i < back.size(); ++i) ASSERT_EQ(back[i], plain[i]) << i;
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::backend::cpu
