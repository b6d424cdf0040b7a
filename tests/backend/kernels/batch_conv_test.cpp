#include "backend/cpu/kernels/batch_conv.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "backend/cpu/kernels/batch_layout.h"
#include "support.h"

namespace lockstep::backend::cpu {
namespace {

/// Plain indices of one convolution.
struct Naive {
  const BatchConv& c;

  [[nodiscard]] int64_t src(int64_t n, int64_t ch, int64_t y, int64_t x) const {
    return blocked(n, ch, y, x, c.in_channels, c.in_height, c.in_width);
  }
  [[nodiscard]] int64_t dst(int64_t n, int64_t ch, int64_t y, int64_t x) const {
    return blocked(n, ch, y, x, c.out_channels, c.out_height(), c.out_width());
  }
  [[nodiscard]] int64_t weight(int64_t o, int64_t i, int64_t y, int64_t x) const {
    return ((o * c.in_channels + i) * c.window.kernel_height + y) * c.window.kernel_width + x;
  }

  /// Calls fn(src index, weight index, dst index) for each multiplication.
  template <class Fn>
  void each(Fn fn) const {
    const Window2d& w = c.window;
    for (int64_t n = 0; n < c.batch; ++n)
      for (int64_t o = 0; o < c.out_channels; ++o)
        for (int64_t y = 0; y < c.out_height(); ++y)
          for (int64_t x = 0; x < c.out_width(); ++x)
            for (int64_t i = 0; i < c.in_channels; ++i)
              for (int64_t ky = 0; ky < w.kernel_height; ++ky)
                for (int64_t kx = 0; kx < w.kernel_width; ++kx) {
                  const int64_t sy = y * w.stride_height + ky - w.pad_top;
                  const int64_t sx = x * w.stride_width + kx - w.pad_left;
                  if (sy < 0 || sy >= c.in_height || sx < 0 || sx >= c.in_width) continue;
                  fn(src(n, i, sy, sx), weight(o, i, ky, kx), dst(n, o, y, x));
                }
  }

 private:
  [[nodiscard]] int64_t blocked(int64_t n, int64_t ch, int64_t y, int64_t x, int64_t channels, int64_t height,
                                int64_t width) const {
    return (((n / c.lanes * channels + ch) * height + y) * width + x) * c.lanes + n % c.lanes;
  }
};

int64_t src_size(const BatchConv& c) {
  return batch_blocked_size(c.batch, c.in_channels * c.in_height * c.in_width, c.lanes);
}
int64_t dst_size(const BatchConv& c) {
  return batch_blocked_size(c.batch, c.out_channels * c.out_height() * c.out_width(), c.lanes);
}
int64_t weights_size(const BatchConv& c) {
  return c.out_channels * c.in_channels * c.window.kernel_height * c.window.kernel_width;
}

/// Gradients are zero in pad lanes.
void clear_pad_lanes(const BatchConv& c, Buffer& blocked) {
  const int64_t used = c.batch % c.lanes;
  if (used == 0) return;
  const int64_t block = blocked.size() / batch_blocks(c.batch, c.lanes);
  for (int64_t i = blocked.size() - block; i < blocked.size(); ++i) {
    if (i % c.lanes >= used) blocked[i] = 0.0F;
  }
}

void check_forward(const BatchConv& c, Activation activation, bool with_bias, uint64_t seed) {
  Buffer src = random_buffer(src_size(c), seed);
  Buffer weights = random_buffer(weights_size(c), seed + 1);
  Buffer bias = random_buffer(c.out_channels, seed + 2);
  std::vector<Reference> expected(static_cast<size_t>(dst_size(c)));
  const Naive naive{c};
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t o = 0; o < c.out_channels; ++o)
      for (int64_t y = 0; y < c.out_height(); ++y)
        for (int64_t x = 0; x < c.out_width(); ++x) {
          expected[static_cast<size_t>(naive.dst(n, o, y, x))].add(with_bias ? bias[o] : 0.0F);
        }
  naive.each([&](int64_t s, int64_t w, int64_t d) {
    expected[static_cast<size_t>(d)].add(static_cast<double>(src[s]) * weights[w]);
  });
  Buffer dst[2] = {Buffer(dst_size(c)), Buffer(dst_size(c))};
  for (int threads : {1, 2}) {
    Buffer scratch(batch_conv_scratch(c, ConvPass::forward, threads));
    batch_conv_forward(c, src.data(), weights.data(), with_bias ? bias.data() : nullptr, activation,
                       dst[threads - 1].data(), scratch.data(), threads);
  }
  EXPECT_EQ(std::memcmp(dst[0].data(), dst[1].data(), static_cast<size_t>(dst[0].size()) * sizeof(float)), 0);
  for (int64_t i = 0; i < dst[0].size() && !::testing::Test::HasFailure(); ++i) {
    Reference& r = expected[static_cast<size_t>(i)];
    const bool padding = r.magnitude == 0 && i % c.lanes >= c.batch % c.lanes && c.batch % c.lanes != 0;
    if (padding) continue;
    if (activation == Activation::relu) r.value = std::max(r.value, 0.0);
    if (activation == Activation::tanh) r.value = std::tanh(r.value);
    if (activation == Activation::sigmoid) r.value = 1.0 / (1.0 + std::exp(-r.value));
    expect_close(dst[0][i], r, "dst", i);
  }
}

void check_backward(const BatchConv& c, uint64_t seed) {
  Buffer src = random_buffer(src_size(c), seed);
  Buffer weights = random_buffer(weights_size(c), seed + 1);
  Buffer diff_dst = random_buffer(dst_size(c), seed + 2);
  clear_pad_lanes(c, diff_dst);
  std::vector<Reference> diff_src(static_cast<size_t>(src_size(c)));
  std::vector<Reference> diff_weights(static_cast<size_t>(weights_size(c)));
  std::vector<Reference> diff_bias(static_cast<size_t>(c.out_channels));
  const Naive naive{c};
  naive.each([&](int64_t s, int64_t w, int64_t d) {
    diff_src[static_cast<size_t>(s)].add(static_cast<double>(diff_dst[d]) * weights[w]);
    diff_weights[static_cast<size_t>(w)].add(static_cast<double>(diff_dst[d]) * src[s]);
  });
  const int64_t plane = c.out_height() * c.out_width() * c.lanes;
  for (int64_t i = 0; i < diff_dst.size(); ++i) {
    diff_bias[static_cast<size_t>(i / plane % c.out_channels)].add(diff_dst[i]);
  }
  for (int threads : {1, 2, 16}) {
    SCOPED_TRACE(::testing::Message() << threads << " threads");
    Buffer seen_src = random_buffer(src_size(c), 9);
    Buffer data_scratch(batch_conv_scratch(c, ConvPass::backward_data, threads));
    batch_conv_backward_data(c, diff_dst.data(), weights.data(), seen_src.data(), data_scratch.data(), threads);
    for (int64_t i = 0; i < seen_src.size() && !::testing::Test::HasFailure(); ++i) {
      expect_close(seen_src[i], diff_src[static_cast<size_t>(i)], "diff_src", i);
    }
    for (const bool with_bias : {true, false}) {
      Buffer seen_weights = random_buffer(weights_size(c), 9);
      Buffer seen_bias = random_buffer(c.out_channels, 9);
      Buffer scratch(batch_conv_scratch(c, ConvPass::backward_weights, threads));
      batch_conv_backward_weights(c, src.data(), diff_dst.data(), seen_weights.data(),
                                  with_bias ? seen_bias.data() : nullptr, scratch.data(), threads);
      for (int64_t i = 0; i < seen_weights.size() && !::testing::Test::HasFailure(); ++i) {
        expect_close(seen_weights[i], diff_weights[static_cast<size_t>(i)], "diff_weights", i);
      }
      for (int64_t i = 0; i < c.out_channels && with_bias; ++i) {
        expect_close(seen_bias[i], diff_bias[static_cast<size_t>(i)], "diff_bias", i);
      }
    }
  }
}

void check(BatchConv c, uint64_t seed) {
  c.lanes = batch_lanes(c.batch);
  const Window2d& w = c.window;
  SCOPED_TRACE(::testing::Message() << "batch " << c.batch << " channels " << c.in_channels << " -> " << c.out_channels
                                    << " image " << c.in_height << "x" << c.in_width << " kernel " << w.kernel_height
                                    << "x" << w.kernel_width << " stride " << w.stride_height << "," << w.stride_width
                                    << " pad " << w.pad_top << "," << w.pad_left << "," << w.pad_bottom << ","
                                    << w.pad_right);
  check_forward(c, static_cast<Activation>(seed % 4), seed % 3 != 0, seed);
  check_backward(c, seed + 100);
}

TEST(BatchConv, TheLayersOfLenet) {
  for (const int64_t batch : {4, 8, 20, 32, 37}) {
    check({.batch = batch,
           .in_channels = 1,
           .in_height = 28,
           .in_width = 28,
           .out_channels = 6,
           .window = {5, 5, 1, 1, 2, 2, 2, 2}},
          static_cast<uint64_t>(batch));
    check({.batch = batch,
           .in_channels = 6,
           .in_height = 14,
           .in_width = 14,
           .out_channels = 16,
           .window = {5, 5, 1, 1, 0, 0, 0, 0}},
          static_cast<uint64_t>(batch) + 1);
  }
}

TEST(BatchConv, SeededShapes) {
  base::Sequence random(7, 7);
  const auto pick = [&random](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random.below(static_cast<uint32_t>(high - low + 1)));
  };
  for (uint64_t seed = 0; seed < 150 && !HasFailure(); ++seed) {
    BatchConv c;
    c.batch = pick(4, 40);
    c.in_channels = pick(1, 7);
    c.out_channels = pick(1, 14);
    c.in_height = pick(1, 12);
    c.in_width = pick(1, 14);
    Window2d& w = c.window;
    w.kernel_height = pick(1, 7);
    w.kernel_width = pick(1, 11);
    w.stride_height = pick(1, 4);
    w.stride_width = pick(1, 4);
    w.pad_top = pick(0, w.kernel_height - 1);
    w.pad_left = pick(0, w.kernel_width - 1);
    w.pad_bottom = pick(0, w.kernel_height - 1);
    w.pad_right = pick(0, w.kernel_width - 1);
    if (c.in_height + w.pad_top + w.pad_bottom < w.kernel_height) w.pad_bottom = w.kernel_height;
    if (c.in_width + w.pad_left + w.pad_right < w.kernel_width) w.pad_right = w.kernel_width;
    check(c, seed);
  }
}

TEST(BatchConv, PadLanesOfGradientsStayZero) {
  BatchConv c{.batch = 13,
              .in_channels = 3,
              .in_height = 9,
              .in_width = 9,
              .out_channels = 5,
              .window = {3, 3, 1, 1, 1, 1, 1, 1}};
  c.lanes = batch_lanes(c.batch);
  Buffer diff_dst = random_buffer(dst_size(c), 1);
  clear_pad_lanes(c, diff_dst);
  Buffer weights = random_buffer(weights_size(c), 2);
  Buffer diff_src = random_buffer(src_size(c), 3);
  batch_conv_backward_data(c, diff_dst.data(), weights.data(), diff_src.data(), nullptr, 1);
  const int64_t block = diff_src.size() / batch_blocks(c.batch, c.lanes);
  for (int64_t i = diff_src.size() - block; i < diff_src.size(); ++i) {
    if (i % c.lanes >= c.batch % c.lanes) {
      EXPECT_EQ(diff_src[i], 0.0F);
    }
  }
}

}  // namespace
}  // namespace lockstep::backend::cpu
