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

TEST(BatchReorder, GoesToChannelBlocksAndBackWithZerosAsPadding) {
  for (const int64_t batch : {4, 9, 16, 20}) {
    for (const int64_t channels : {1, 8, 16, 21, 40}) {
      for (const int block : {8, 16}) {
        SCOPED_TRACE(::testing::Message() << batch << " x " << channels << " in blocks of " << block);
        const BothBlocked s{batch, channels, 7, batch_lanes(batch), block};
        const int64_t blocks = (channels + block - 1) / block;
        Buffer src = random_buffer(batch_blocked_size(batch, channels * s.inner, s.lanes), 3);
        Buffer dst = random_buffer(batch * blocks * block * s.inner, 4);
        batch_to_channel_blocked(s, src.data(), dst.data(), 2);
        const auto in_batch = [&](int64_t n, int64_t c, int64_t i) {
          return (n / s.lanes * channels + c) * s.inner * s.lanes + i * s.lanes + n % s.lanes;
        };
        for (int64_t at = 0; at < dst.size(); ++at) {
          const int64_t i = at / block % s.inner;
          const int64_t c = at / (block * s.inner) % blocks * block + at % block;
          const int64_t n = at / (block * s.inner * blocks);
          ASSERT_EQ(dst[at], c < channels ? src[in_batch(n, c, i)] : 0.0F) << n << ", " << c << ", " << i;
        }
        Buffer back = random_buffer(src.size(), 5);
        channel_to_batch_blocked(s, dst.data(), back.data(), 2);
        for (int64_t n = 0; n < batch_blocks(batch, s.lanes) * s.lanes; ++n) {
          for (int64_t k = 0; k < channels * s.inner; ++k) {
            const int64_t at = in_batch(n, k / s.inner, k % s.inner);
            ASSERT_EQ(back[at], n < batch ? src[at] : 0.0F) << n << ", " << k;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::backend::cpu
