#include "backend/cpu/kernels/pool_bf16.h"

#include <algorithm>
#include <limits>

#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/pool_bf16.cpp"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/kernels/bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {
namespace {

/// 16 channels are one vector with AVX-512, several with narrower sets.
using Tag = hn::CappedTag<float, kBf16PoolLanes>;
constexpr auto kStep = static_cast<int64_t>(hn::MaxLanes(Tag()));

base::Range clip(int64_t index, int64_t stride, int64_t pad, int64_t kernel, int64_t size) {
  const int64_t begin = index * stride - pad;
  return {std::max<int64_t>(begin, 0), std::min(begin + kernel, size)};
}

base::Range window_rows(const Pool& pool, int64_t y) {
  return clip(y, pool.window.stride_height, pool.window.pad_top, pool.window.kernel_height, pool.in_height);
}

base::Range window_columns(const Pool& pool, int64_t x) {
  return clip(x, pool.window.stride_width, pool.window.pad_left, pool.window.kernel_width, pool.in_width);
}

/// Calls fn(pixel) for each pixel of the window, in row-major order.
template <class Fn>
HWY_INLINE void for_cells(const Pool& pool, const Bf16* src, base::Range rows, base::Range columns, Fn fn) {
  for (int64_t y = rows.begin; y < rows.end; ++y) {
    const Bf16* row = src + y * pool.in_width * pool.lanes;
    for (int64_t x = columns.begin; x < columns.end; ++x) fn(row + x * pool.lanes);
  }
}

HWY_INLINE hn::Vec<Tag> maximum(const Pool& pool, const Bf16* src, base::Range rows, base::Range columns) {
  const Tag d;
  auto best = hn::Set(d, -std::numeric_limits<float>::infinity());
  for_cells(pool, src, rows, columns, [&](const Bf16* pixel) HWY_ATTR { best = hn::Max(best, load_bf16(d, pixel)); });
  return best;
}

HWY_INLINE hn::Vec<Tag> mean(const Pool& pool, const Bf16* src, base::Range rows, base::Range columns) {
  const Tag d;
  auto sum = hn::Zero(d);
  for_cells(pool, src, rows, columns, [&](const Bf16* pixel) HWY_ATTR { sum = hn::Add(sum, load_bf16(d, pixel)); });
  return hn::Div(sum, hn::Set(d, static_cast<float>(rows.size() * columns.size())));
}

template <bool Largest>
void forward_strip(const Pool& pool, int64_t channels, const Bf16* src, Bf16* dst) {
  const int64_t width = pool.out_width();
  for (int64_t y = 0; y < pool.out_height(); ++y) {
    const base::Range rows = window_rows(pool, y);
    for (int64_t x = 0; x < width; ++x) {
      const base::Range columns = window_columns(pool, x);
      for (int64_t part = 0; part < channels; part += kStep) {
        const auto result = Largest ? maximum(pool, src + part, rows, columns) : mean(pool, src + part, rows, columns);
        store_bf16(Tag(), result, dst + (y * width + x) * pool.lanes + part);
      }
    }
  }
}

/// The rows of a strip of diff_src that windows still add to, in float32: as many as a window is high. Row y is stored
/// at y modulo that height.
class OpenRows {
 public:
  OpenRows(const Pool& pool, int64_t channels, Bf16* diff_src, float* memory)
      : width_(pool.in_width),
        pixel_(pool.lanes),
        channels_(channels),
        count_(pool.window.kernel_height),
        diff_src_(diff_src),
        memory_(memory) {
    std::fill_n(memory_, count_ * width_ * channels_, 0.0F);
  }

  [[nodiscard]] int64_t channels() const { return channels_; }
  float* row(int64_t y) { return memory_ + (y % count_) * width_ * channels_; }

  /// Rounds and writes the rows below `end`, which no later window touches.
  void finish(int64_t end) {
    const Tag d;
    for (; done_ < end; ++done_) {
      float* sums = row(done_);
      Bf16* to = diff_src_ + done_ * width_ * pixel_;
      for (int64_t x = 0; x < width_; ++x, sums += channels_, to += pixel_) {
        for (int64_t i = 0; i < channels_; i += kStep) {
          store_bf16(d, hn::LoadU(d, sums + i), to + i);
          hn::StoreU(hn::Zero(d), d, sums + i);
        }
      }
    }
  }

 private:
  int64_t width_;
  int64_t pixel_;
  int64_t channels_;
  int64_t count_;
  int64_t done_ = 0;
  Bf16* diff_src_;
  float* memory_;
};

HWY_INLINE void add_to(float* sum, hn::Vec<Tag> v) {
  const Tag d;
  hn::StoreU(hn::Add(hn::LoadU(d, sum), v), d, sum);
}

/// Calls fn(rows, columns, output offset) for each window, closing rows as they become final.
template <class Fn>
HWY_INLINE void for_windows(const Pool& pool, OpenRows& open, Fn fn) {
  const int64_t width = pool.out_width();
  for (int64_t y = 0; y < pool.out_height(); ++y) {
    const base::Range rows = window_rows(pool, y);
    open.finish(rows.begin);
    for (int64_t x = 0; x < width; ++x) {
      const base::Range columns = window_columns(pool, x);
      for (int64_t part = 0; part < open.channels(); part += kStep) {
        fn(rows, columns, (y * width + x) * pool.lanes, part);
      }
    }
  }
  open.finish(pool.in_height);
}

void max_strip_backward(const Pool& pool, int64_t channels, const Bf16* src, const Bf16* diff_dst, Bf16* diff_src,
                        bool through_relu, float* scratch) {
  const Tag d;
  OpenRows open(pool, channels, diff_src, scratch);
  for_windows(pool, open, [&](base::Range rows, base::Range columns, int64_t out, int64_t part) HWY_ATTR {
    const auto best = maximum(pool, src + part, rows, columns);
    auto diff = load_bf16(d, diff_dst + out + part);
    if (through_relu) diff = hn::IfThenElseZero(hn::Gt(best, hn::Zero(d)), diff);
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      const Bf16* pixels = src + y * pool.in_width * pool.lanes + part;
      float* sums = open.row(y) + part;
      for (int64_t x = columns.begin; x < columns.end; ++x) {
        const auto here = hn::Eq(load_bf16(d, pixels + x * pool.lanes), best);
        add_to(sums + x * channels, hn::IfThenElseZero(here, diff));
        diff = hn::IfThenZeroElse(here, diff);
      }
    }
  });
}

void average_strip_backward(const Pool& pool, int64_t channels, const Bf16* diff_dst, Bf16* diff_src, float* scratch) {
  const Tag d;
  OpenRows open(pool, channels, diff_src, scratch);
  for_windows(pool, open, [&](base::Range rows, base::Range columns, int64_t out, int64_t part) HWY_ATTR {
    const auto cells = static_cast<float>(rows.size() * columns.size());
    const auto diff = hn::Div(load_bf16(d, diff_dst + out + part), hn::Set(d, cells));
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      float* sums = open.row(y) + part;
      for (int64_t x = columns.begin; x < columns.end; ++x) add_to(sums + x * channels, diff);
    }
  });
}

/// Calls fn(offset of src, offset of dst) for the strips of a thread.
template <class Fn>
HWY_INLINE void for_strips(const Pool& pool, int64_t channels, base::Range strips, Fn fn) {
  const int64_t src = pool.in_height * pool.in_width * pool.lanes;
  const int64_t dst = pool.out_height() * pool.out_width() * pool.lanes;
  const int64_t in_plane = pool.lanes / channels;
  for (int64_t i = strips.begin; i < strips.end; ++i) {
    const int64_t first = i % in_plane * channels;
    fn(i / in_plane * src + first, i / in_plane * dst + first);
  }
}

void max_range(const Pool& pool, int64_t channels, const Bf16* src, Bf16* dst, base::Range strips) {
  for_strips(pool, channels, strips,
             [&](int64_t in, int64_t out) { forward_strip<true>(pool, channels, src + in, dst + out); });
}

void average_range(const Pool& pool, int64_t channels, const Bf16* src, Bf16* dst, base::Range strips) {
  for_strips(pool, channels, strips,
             [&](int64_t in, int64_t out) { forward_strip<false>(pool, channels, src + in, dst + out); });
}

void max_backward_range(const Pool& pool, int64_t channels, const Bf16* src, const Bf16* diff_dst, Bf16* diff_src,
                        bool through_relu, float* scratch, base::Range strips) {
  for_strips(pool, channels, strips, [&](int64_t in, int64_t out) {
    max_strip_backward(pool, channels, src + in, diff_dst + out, diff_src + in, through_relu, scratch);
  });
}

void average_backward_range(const Pool& pool, int64_t channels, const Bf16* diff_dst, Bf16* diff_src, float* scratch,
                            base::Range strips) {
  for_strips(pool, channels, strips, [&](int64_t in, int64_t out) {
    average_strip_backward(pool, channels, diff_dst + out, diff_src + in, scratch);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::backend::cpu {
namespace {

HWY_EXPORT(max_range);
HWY_EXPORT(average_range);
HWY_EXPORT(max_backward_range);
HWY_EXPORT(average_backward_range);

/// Vectors read that pay for one more thread.
constexpr int64_t kGrain = 1'000;

/// Returns the channels that a thread pools together: whole cache lines of wide pixels, few enough for open rows to
/// stay in the cache.
int64_t strip_channels(const Pool& pool) {
  int64_t channels = 64;
  while (pool.lanes % channels != 0) channels /= 2;
  return channels;
}

int64_t scratch_each(const Pool& pool) { return pool.window.kernel_height * pool.in_width * strip_channels(pool); }

/// Calls body(strips, number of the thread) for each thread's share.
template <class Body>
void for_shares(const Pool& pool, int threads, Body body) {
  const int64_t reads = pool.out_height() * pool.out_width() * pool.window.kernel_height * pool.window.kernel_width;
  const int64_t vectors = pool.planes * pool.lanes / kBf16PoolLanes;
  const int64_t strips = pool.planes * pool.lanes / strip_channels(pool);
  base::parallel(base::split_for(vectors * reads, kGrain, threads),
                 [&](int part, int parts) { body(base::share(strips, part, parts), part); });
}

}  // namespace

int64_t pool_bf16_scratch(const Pool& pool, int threads) { return threads * scratch_each(pool); }

void max_pool_bf16(const Pool& pool, const Bf16* src, Bf16* dst, int threads) {
  for_shares(pool, threads, [&](base::Range strips, int) {
    HWY_DYNAMIC_DISPATCH(max_range)(pool, strip_channels(pool), src, dst, strips);
  });
}

void max_pool_bf16_backward(const Pool& pool, const Bf16* src, const Bf16* diff_dst, Bf16* diff_src, bool through_relu,
                            float* scratch, int threads) {
  for_shares(pool, threads, [&](base::Range strips, int part) {
    HWY_DYNAMIC_DISPATCH(max_backward_range)
    (pool, strip_channels(pool), src, diff_dst, diff_src, through_relu, scratch + part * scratch_each(pool), strips);
  });
}

void average_pool_bf16(const Pool& pool, const Bf16* src, Bf16* dst, int threads) {
  for_shares(pool, threads, [&](base::Range strips, int) {
    HWY_DYNAMIC_DISPATCH(average_range)(pool, strip_channels(pool), src, dst, strips);
  });
}

void average_pool_bf16_backward(const Pool& pool, const Bf16* diff_dst, Bf16* diff_src, float* scratch, int threads) {
  for_shares(pool, threads, [&](base::Range strips, int part) {
    HWY_DYNAMIC_DISPATCH(average_backward_range)
    (pool, strip_channels(pool), diff_dst, diff_src, scratch + part * scratch_each(pool), strips);
  });
}

}  // namespace lockstep::backend::cpu
#endif
