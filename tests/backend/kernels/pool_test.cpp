#include "backend/cpu/kernels/pool.h"

#include <gtest/gtest.h>

#include <vector>

#include "backend/cpu/kernels/batch_layout.h"
#include "support.h"

namespace lockstep::backend::cpu {
namespace {

/// Values with many ties.
Buffer coarse_buffer(int64_t size, uint64_t seed) {
  Buffer buffer = random_buffer(size, seed, -2, 3);
  for (int64_t i = 0; i < size; ++i) buffer[i] = std::floor(buffer[i]);
  return buffer;
}

/// Calls fn(output index, indices of the window's pixels in row-major order) for each window and lane.
template <class Fn>
void each_window(const Pool& p, Fn fn) {
  const Window2d& w = p.window;
  std::vector<int64_t> cells;
  for (int64_t plane = 0; plane < p.planes; ++plane)
    for (int64_t y = 0; y < p.out_height(); ++y)
      for (int64_t x = 0; x < p.out_width(); ++x)
        for (int64_t lane = 0; lane < p.lanes; ++lane) {
          cells.clear();
          for (int64_t ky = 0; ky < w.kernel_height; ++ky)
            for (int64_t kx = 0; kx < w.kernel_width; ++kx) {
              const int64_t sy = y * w.stride_height + ky - w.pad_top;
              const int64_t sx = x * w.stride_width + kx - w.pad_left;
              if (sy < 0 || sy >= p.in_height || sx < 0 || sx >= p.in_width) continue;
              cells.push_back(((plane * p.in_height + sy) * p.in_width + sx) * p.lanes + lane);
            }
          fn(((plane * p.out_height() + y) * p.out_width() + x) * p.lanes + lane, cells);
        }
}

int64_t src_size(const Pool& p) { return p.planes * p.in_height * p.in_width * p.lanes; }
int64_t dst_size(const Pool& p) { return p.planes * p.out_height() * p.out_width() * p.lanes; }

void check_max(const Pool& p, int threads, uint64_t seed) {
  Buffer src = coarse_buffer(src_size(p), seed);
  Buffer diff_dst = random_buffer(dst_size(p), seed + 1);
  Buffer dst(dst_size(p));
  max_pool(p, src.data(), dst.data(), threads);
  for (const bool through_relu : {false, true}) {
    Buffer diff_src = random_buffer(src_size(p), seed + 2);
    max_pool_backward(p, src.data(), diff_dst.data(), diff_src.data(), through_relu, threads);
    std::vector<float> expected(static_cast<size_t>(src_size(p)));
    each_window(p, [&](int64_t out, const std::vector<int64_t>& cells) {
      int64_t best = cells[0];
      for (const int64_t cell : cells) {
        if (src[cell] > src[best]) best = cell;
      }
      EXPECT_EQ(dst[out], src[best]) << "max " << out;
      if (!through_relu || src[best] > 0) expected[static_cast<size_t>(best)] += diff_dst[out];
    });
    for (int64_t i = 0; i < src_size(p) && !::testing::Test::HasFailure(); ++i) {
      EXPECT_NEAR(diff_src[i], expected[static_cast<size_t>(i)], 1e-5) << "diff_src " << i << " relu " << through_relu;
    }
  }
}

void check_average(const Pool& p, int threads, uint64_t seed) {
  Buffer src = random_buffer(src_size(p), seed);
  Buffer diff_dst = random_buffer(dst_size(p), seed + 1);
  Buffer dst(dst_size(p));
  Buffer diff_src = random_buffer(src_size(p), seed + 2);
  average_pool(p, src.data(), dst.data(), threads);
  average_pool_backward(p, diff_dst.data(), diff_src.data(), threads);
  std::vector<float> expected(static_cast<size_t>(src_size(p)));
  each_window(p, [&](int64_t out, const std::vector<int64_t>& cells) {
    float sum = 0;
    for (const int64_t cell : cells) {
      sum += src[cell];
      expected[static_cast<size_t>(cell)] += diff_dst[out] / static_cast<float>(cells.size());
    }
    EXPECT_NEAR(dst[out], sum / static_cast<float>(cells.size()), 1e-5) << "average " << out;
  });
  for (int64_t i = 0; i < src_size(p) && !::testing::Test::HasFailure(); ++i) {
    EXPECT_NEAR(diff_src[i], expected[static_cast<size_t>(i)], 1e-5) << "average diff_src " << i;
  }
}

void check(const Pool& p, uint64_t seed) {
  const Window2d& w = p.window;
  SCOPED_TRACE(::testing::Message() << "planes " << p.planes << " lanes " << p.lanes << " image " << p.in_height << "x"
                                    << p.in_width << " kernel " << w.kernel_height << "x" << w.kernel_width
                                    << " stride " << w.stride_height << "," << w.stride_width << " pad " << w.pad_top
                                    << "," << w.pad_left);
  for (const int threads : {1, 2, 5}) {
    check_max(p, threads, seed);
    check_average(p, threads, seed);
  }
}

TEST(Pool, TwoByTwoAsInLenet) {
  for (const int lanes : {1, batch_lanes(64), batch_lanes(8)}) {
    check({.lanes = lanes, .planes = 12, .in_height = 28, .in_width = 28, .window = {2, 2, 2, 2}}, 1);
    check({.lanes = lanes, .planes = 12, .in_height = 28, .in_width = 28, .window = {2, 2, 2, 2}, .channels = 6}, 3);
    check({.lanes = lanes, .planes = 5, .in_height = 11, .in_width = 9, .window = {2, 2, 2, 2}}, 2);
  }
}

TEST(Pool, SeededShapes) {
  base::Sequence random(3, 3);
  const auto pick = [&random](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random.below(static_cast<uint32_t>(high - low + 1)));
  };
  for (uint64_t seed = 0; seed < 100 && !HasFailure(); ++seed) {
    Pool p;
    p.lanes = seed % 2 == 0 ? 1 : batch_lanes(seed % 3 == 0 ? 64 : 8);
    p.planes = pick(1, 9);
    p.in_height = pick(1, 12);
    p.in_width = pick(1, 12);
    Window2d& w = p.window;
    w.kernel_height = pick(1, std::min<int64_t>(4, p.in_height));
    w.kernel_width = pick(1, std::min<int64_t>(4, p.in_width));
    w.stride_height = pick(1, 4);
    w.stride_width = pick(1, 4);
    w.pad_top = pick(0, w.kernel_height / 2);
    w.pad_left = pick(0, w.kernel_width / 2);
    w.pad_bottom = pick(0, w.kernel_height / 2);
    w.pad_right = pick(0, w.kernel_width / 2);
    if (w.kernel_height == 1) w.pad_top = w.pad_bottom = 0;
    if (w.kernel_width == 1) w.pad_left = w.pad_right = 0;
    p.channels = seed % 5 == 0 ? p.planes : 1;
    check(p, seed);
  }
}

}  // namespace
}  // namespace lockstep::backend::cpu
