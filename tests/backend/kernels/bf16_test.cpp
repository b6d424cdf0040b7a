#include "backend/cpu/kernels/bf16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "backend/cpu/kernels/pool_bf16.h"
#include "support.h"

namespace lockstep::backend::cpu {
namespace {

using Narrow = std::vector<Bf16>;

/// Random values rounded to bfloat16, and the same values as floats.
struct Tensor {
  Tensor(int64_t size, uint64_t seed) : wide(random_buffer(size, seed, -2, 2)), narrow_bits(static_cast<size_t>(size)) {
    for (int64_t i = 0; i < size; ++i) {
      narrow_bits[static_cast<size_t>(i)] = narrow(wide[i]);
      wide[i] = widen(narrow_bits[static_cast<size_t>(i)]);
    }
  }
  Buffer wide;
  Narrow narrow_bits;
};

TEST(Bf16, RoundsToNearestAndTiesToEven) {
  EXPECT_EQ(narrow(1.0F), 0x3f80);
  EXPECT_EQ(narrow(-2.0F), 0xc000);
  EXPECT_EQ(narrow(1.0F + 0x1p-8F), 0x3f80) << "halfway, down to even";
  EXPECT_EQ(narrow(1.0F + 0x3p-8F), 0x3f82) << "halfway, up to even";
  EXPECT_EQ(narrow(1.0F + 0x1.02p-8F), 0x3f81);
  EXPECT_EQ(narrow(std::numeric_limits<float>::max()), 0x7f80) << "too large becomes infinite";
  EXPECT_EQ(narrow(-std::numeric_limits<float>::infinity()), 0xff80);
  EXPECT_TRUE(std::isnan(widen(narrow(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isnan(widen(narrow(std::bit_cast<float>(0x7f800001U))))) << "a NaN whose upper half looks infinite";
}

TEST(Bf16, CastsAreThoseOfEachElementForAnySizeAndThreadCount) {
  for (const int64_t size : {0, 1, 15, 16, 17, 33, 100'003}) {
    for (const int threads : {1, 3}) {
      Buffer src = random_buffer(size, 7, -1e3F, 1e3F);
      for (int64_t i = 0; i < size; i += 13) src[i] = i % 2 == 0 ? std::nanf("") : 1.0F + 0x1p-8F;
      Narrow bits(static_cast<size_t>(size));
      to_bf16(src.data(), bits.data(), size, threads);
      Buffer back(size);
      from_bf16(bits.data(), back.data(), size, threads);
      for (int64_t i = 0; i < size; ++i) {
        ASSERT_EQ(bits[static_cast<size_t>(i)], narrow(src[i])) << i << " of " << size;
        ASSERT_EQ(std::bit_cast<uint32_t>(back[i]), std::bit_cast<uint32_t>(widen(bits[static_cast<size_t>(i)]))) << i;
      }
    }
  }
}

TEST(Bf16, ReluAndItsGradient) {
  for (const int64_t size : {1, 31, 32, 65, 50'001}) {
    Tensor x(size, 1);
    Tensor diff(size, 2);
    Narrow y(x.narrow_bits);
    relu_bf16(y.data(), y.data(), size, 2);
    Narrow dx(diff.narrow_bits);
    relu_grad_bf16(y.data(), dx.data(), dx.data(), size, 2);
    for (int64_t i = 0; i < size; ++i) {
      const auto at = static_cast<size_t>(i);
      ASSERT_EQ(widen(y[at]), std::max(x.wide[i], 0.0F)) << i;
      ASSERT_EQ(widen(dx[at]), x.wide[i] > 0 ? diff.wide[i] : 0.0F) << i;
    }
  }
}

/// Runs the same pool in float32, with each lane as its own planes.
Buffer lane_planes(Buffer& blocked, const Pool& pool, int64_t pixels) {
  const int64_t lanes = pool.lanes;
  Buffer plain(pool.planes * pixels * lanes);
  for (int64_t p = 0; p < pool.planes; ++p)
    for (int64_t i = 0; i < pixels; ++i)
      for (int64_t lane = 0; lane < lanes; ++lane)
        plain[(p * lanes + lane) * pixels + i] = blocked[(p * pixels + i) * lanes + lane];
  return plain;
}

void expect_rounded(const Narrow& got, Buffer& want, const Pool& pool, int64_t pixels, const char* what) {
  Buffer wide(static_cast<int64_t>(got.size()));
  for (size_t i = 0; i < got.size(); ++i) wide[static_cast<int64_t>(i)] = widen(got[i]);
  Buffer plain = lane_planes(wide, pool, pixels);
  for (size_t i = 0; i < got.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    ASSERT_NEAR(plain[at], want[at], std::fabs(want[at]) * 0x1.02p-8F + 1e-6F) << what << " " << at;
  }
}

class PoolBf16 : public testing::TestWithParam<Window2d> {};

void expect_float32_pooling_rounded_once(int lanes, const Window2d& window) {
  const Pool blocked{lanes, 3, 13, 9, window};
  Pool plain = blocked;
  plain.lanes = 1;
  plain.planes *= lanes;
  const int64_t in = blocked.in_height * blocked.in_width;
  const int64_t out = blocked.out_height() * blocked.out_width();
  Tensor src(blocked.planes * in * lanes, 3);
  Tensor diff(blocked.planes * out * lanes, 4);
  Buffer plain_src = lane_planes(src.wide, blocked, in);
  Buffer plain_diff = lane_planes(diff.wide, blocked, out);
  Buffer scratch(pool_bf16_scratch(blocked, 2));
  Narrow dst(diff.narrow_bits.size());
  Narrow diff_src(src.narrow_bits.size());
  Buffer want(blocked.planes * out * lanes);
  Buffer want_diff(blocked.planes * in * lanes);

  max_pool_bf16(blocked, src.narrow_bits.data(), dst.data(), 2);
  max_pool(plain, plain_src.data(), want.data(), 1);
  expect_rounded(dst, want, blocked, out, "maximum");
  average_pool_bf16(blocked, src.narrow_bits.data(), dst.data(), 2);
  average_pool(plain, plain_src.data(), want.data(), 1);
  expect_rounded(dst, want, blocked, out, "mean");

  for (const bool through_relu : {false, true}) {
    max_pool_bf16_backward(blocked, src.narrow_bits.data(), diff.narrow_bits.data(), diff_src.data(), through_relu,
                           scratch.data(), 2);
    max_pool_backward(plain, plain_src.data(), plain_diff.data(), want_diff.data(), through_relu, 1);
    expect_rounded(diff_src, want_diff, blocked, in, "gradient of the maximum");
  }
  average_pool_bf16_backward(blocked, diff.narrow_bits.data(), diff_src.data(), scratch.data(), 2);
  average_pool_backward(plain, plain_diff.data(), want_diff.data(), 1);
  expect_rounded(diff_src, want_diff, blocked, in, "gradient of the mean");
}

TEST_P(PoolBf16, IsFloat32PoolingRoundedOnceInBlocksAndWithChannelsLast) {
  for (const int lanes : {kBf16PoolLanes, 48, 128}) expect_float32_pooling_rounded_once(lanes, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Windows, PoolBf16,
                         testing::Values(Window2d{2, 2, 2, 2, 0, 0, 0, 0}, Window2d{3, 3, 2, 2, 0, 0, 0, 0},
                                         Window2d{3, 3, 2, 2, 1, 1, 1, 1}, Window2d{3, 2, 1, 1, 0, 0, 0, 0},
                                         Window2d{2, 2, 3, 4, 0, 0, 0, 0}, Window2d{1, 1, 1, 1, 0, 0, 0, 0},
                                         Window2d{5, 5, 1, 3, 2, 2, 2, 2}));

}  // namespace
}  // namespace lockstep::backend::cpu
