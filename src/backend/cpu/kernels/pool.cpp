#include "backend/cpu/kernels/pool.h"

#include <algorithm>
#include <limits>

#include "base/loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/pool.cpp"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {
namespace {

/// Returns the part of window `index` inside the image.
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

/// Calls fn(rows, columns, output index) for each window of a plane.
template <class Fn>
HWY_INLINE void for_windows(const Pool& pool, Fn fn) {
  const int64_t width = pool.out_width();
  for (int64_t y = 0; y < pool.out_height(); ++y) {
    const base::Range rows = window_rows(pool, y);
    for (int64_t x = 0; x < width; ++x) fn(rows, window_columns(pool, x), y * width + x);
  }
}

template <class D>
HWY_INLINE hn::Vec<D> maximum(D d, const Pool& pool, const float* src, base::Range rows, base::Range columns) {
  auto best = hn::Set(d, -std::numeric_limits<float>::infinity());
  for (int64_t y = rows.begin; y < rows.end; ++y) {
    for (int64_t x = columns.begin; x < columns.end; ++x) {
      best = hn::Max(best, hn::LoadU(d, src + (y * pool.in_width + x) * pool.lanes));
    }
  }
  return best;
}

/// Pools the 2 x 2 windows of two source rows.
template <class D>
HWY_INLINE void max_row2(D d, const float* HWY_RESTRICT top, const float* HWY_RESTRICT bottom, float* HWY_RESTRICT dst,
                         int64_t count) {
  constexpr auto kStep = static_cast<int64_t>(hn::MaxLanes(D()));
  for (int64_t x = 0; x < count; ++x) {
    const auto high = hn::Max(hn::LoadU(d, top + 2 * x * kStep), hn::LoadU(d, top + (2 * x + 1) * kStep));
    const auto low = hn::Max(hn::LoadU(d, bottom + 2 * x * kStep), hn::LoadU(d, bottom + (2 * x + 1) * kStep));
    hn::StoreU(hn::Max(high, low), d, dst + x * kStep);
  }
}

template <class D>
void max_plane(D d, const Pool& pool, const float* src, float* dst) {
  if (pool.tiles_exactly(2)) {
    const int64_t row = pool.in_width * pool.lanes;
    for (int64_t y = 0; y < pool.out_height(); ++y) {
      max_row2(d, src + 2 * y * row, src + (2 * y + 1) * row, dst + y * pool.out_width() * pool.lanes,
               pool.out_width());
    }
    return;
  }
  for_windows(pool, [&](base::Range rows, base::Range columns, int64_t out)
                        HWY_ATTR { hn::StoreU(maximum(d, pool, src, rows, columns), d, dst + out * pool.lanes); });
}

/// Passes the gradient of a window to its first maximum; through a ReLU, only if that is positive.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V passed_on(D d, V best, V diff, bool through_relu) {
  return through_relu ? hn::IfThenElseZero(hn::Gt(best, hn::Zero(d)), diff) : diff;
}

template <class D>
HWY_INLINE void max_row2_backward(D d, const float* HWY_RESTRICT src, const float* HWY_RESTRICT diff_dst,
                                  float* HWY_RESTRICT diff_src, int64_t count, bool through_relu) {
  constexpr auto kStep = static_cast<int64_t>(hn::MaxLanes(D()));
  const int64_t row = 2 * count * kStep;
  for (int64_t x = 0; x < count; ++x) {
    const int64_t at = 2 * x * kStep;
    const auto a = hn::LoadU(d, src + at);
    const auto b = hn::LoadU(d, src + at + kStep);
    const auto c = hn::LoadU(d, src + at + row);
    const auto e = hn::LoadU(d, src + at + row + kStep);
    const auto best = hn::Max(hn::Max(a, b), hn::Max(c, e));
    const auto diff = passed_on(d, best, hn::LoadU(d, diff_dst + x * kStep), through_relu);
    const auto to_a = hn::Eq(a, best);
    const auto after_a = hn::IfThenZeroElse(to_a, diff);
    const auto to_b = hn::Eq(b, best);
    const auto after_b = hn::IfThenZeroElse(to_b, after_a);
    const auto to_c = hn::Eq(c, best);
    hn::StoreU(hn::IfThenElseZero(to_a, diff), d, diff_src + at);
    hn::StoreU(hn::IfThenElseZero(to_b, after_a), d, diff_src + at + kStep);
    hn::StoreU(hn::IfThenElseZero(to_c, after_b), d, diff_src + at + row);
    hn::StoreU(hn::IfThenZeroElse(to_c, after_b), d, diff_src + at + row + kStep);
  }
}

template <class D>
void max_plane_backward(D d, const Pool& pool, const float* src, const float* diff_dst, float* diff_src,
                        bool through_relu) {
  if (pool.tiles_exactly(2)) {
    const int64_t row = pool.in_width * pool.lanes;
    for (int64_t y = 0; y < pool.out_height(); ++y) {
      max_row2_backward(d, src + 2 * y * row, diff_dst + y * pool.out_width() * pool.lanes, diff_src + 2 * y * row,
                        pool.out_width(), through_relu);
    }
    return;
  }
  std::fill_n(diff_src, pool.in_height * pool.in_width * pool.lanes, 0.0F);
  for_windows(pool, [&](base::Range rows, base::Range columns, int64_t out) HWY_ATTR {
    const auto best = maximum(d, pool, src, rows, columns);
    auto diff = passed_on(d, best, hn::LoadU(d, diff_dst + out * pool.lanes), through_relu);
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      for (int64_t x = columns.begin; x < columns.end; ++x) {
        const int64_t at = (y * pool.in_width + x) * pool.lanes;
        const auto here = hn::Eq(hn::LoadU(d, src + at), best);
        hn::StoreU(hn::Add(hn::LoadU(d, diff_src + at), hn::IfThenElseZero(here, diff)), d, diff_src + at);
        diff = hn::IfThenZeroElse(here, diff);
      }
    }
  });
}

template <class D>
void average_plane(D d, const Pool& pool, const float* src, float* dst) {
  for_windows(pool, [&](base::Range rows, base::Range columns, int64_t out) HWY_ATTR {
    auto sum = hn::Zero(d);
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      for (int64_t x = columns.begin; x < columns.end; ++x) {
        sum = hn::Add(sum, hn::LoadU(d, src + (y * pool.in_width + x) * pool.lanes));
      }
    }
    const auto count = static_cast<float>(rows.size() * columns.size());
    hn::StoreU(hn::Div(sum, hn::Set(d, count)), d, dst + out * pool.lanes);
  });
}

template <class D>
void average_plane_backward(D d, const Pool& pool, const float* diff_dst, float* diff_src) {
  std::fill_n(diff_src, pool.in_height * pool.in_width * pool.lanes, 0.0F);
  for_windows(pool, [&](base::Range rows, base::Range columns, int64_t out) HWY_ATTR {
    const auto count = static_cast<float>(rows.size() * columns.size());
    const auto diff = hn::Div(hn::LoadU(d, diff_dst + out * pool.lanes), hn::Set(d, count));
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      for (int64_t x = columns.begin; x < columns.end; ++x) {
        const int64_t at = (y * pool.in_width + x) * pool.lanes;
        hn::StoreU(hn::Add(hn::LoadU(d, diff_src + at), diff), d, diff_src + at);
      }
    }
  });
}

/// Calls fn(vector tag, offset of src, offset of dst) for a thread's share of the strips: the same strips of all
/// channels of an image, as in the convolutions around.
template <int Lanes, class Fn>
void for_strips(const Strips& strips, int thread, int threads, Fn fn) {
  const Pool& pool = strips.pool;
  const base::Range mine = base::aligned_share(pool.planes / pool.channels * strips.each, thread, threads);
  const int64_t src = pool.in_height * pool.in_width * Lanes;
  const int64_t dst = pool.out_height() * pool.out_width() * Lanes;
  for (int64_t i = mine.begin; i < mine.end; ++i) {
    for (int64_t channel = 0; channel < pool.channels; ++channel) {
      const int64_t strip = (i / strips.each * pool.channels + channel) * strips.each + i % strips.each;
      fn(hn::FixedTag<float, Lanes>(), strip * src, strip * dst);
    }
  }
}

template <class Fn>
void with_lanes(const Strips& strips, int thread, int threads, Fn fn) {
  if (strips.pool.lanes == 1) return for_strips<1>(strips, thread, threads, fn);
#if HWY_TARGET == HWY_AVX3
  if (strips.pool.lanes == 16) return for_strips<16>(strips, thread, threads, fn);
#endif
  for_strips<std::min(kLanes, 8)>(strips, thread, threads, fn);
}

void max_share(const Strips& strips, const float* src, float* dst, int thread, int threads) {
  with_lanes(strips, thread, threads,
             [&](auto d, int64_t in, int64_t out) HWY_ATTR { max_plane(d, strips.pool, src + in, dst + out); });
}

void max_backward_share(const Strips& strips, const float* src, const float* diff_dst, float* diff_src,
                        bool through_relu, int thread, int threads) {
  with_lanes(strips, thread, threads, [&](auto d, int64_t in, int64_t out) HWY_ATTR {
    max_plane_backward(d, strips.pool, src + in, diff_dst + out, diff_src + in, through_relu);
  });
}

void average_share(const Strips& strips, const float* src, float* dst, int thread, int threads) {
  with_lanes(strips, thread, threads,
             [&](auto d, int64_t in, int64_t out) HWY_ATTR { average_plane(d, strips.pool, src + in, dst + out); });
}

void average_backward_share(const Strips& strips, const float* diff_dst, float* diff_src, int thread, int threads) {
  with_lanes(strips, thread, threads, [&](auto d, int64_t in, int64_t out) HWY_ATTR {
    average_plane_backward(d, strips.pool, diff_dst + out, diff_src + in);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::backend::cpu {
namespace {

HWY_EXPORT(max_share);
HWY_EXPORT(max_backward_share);
HWY_EXPORT(average_share);
HWY_EXPORT(average_backward_share);

/// Vectors read for which one more thread pays off: about as long as a loop of many threads takes to start. No more,
/// because the threads that wrote an image have it in their caches.
constexpr int64_t kGrain = 300;

Strips whole_planes(Pool pool) {
  pool.channels = 1;
  return {pool, 1};
}

/// Exact tiles are cut into strips of one row of windows, which threads share more evenly.
Strips strips_of(Pool pool) {
  if (!pool.tiles_exactly(2)) return whole_planes(pool);
  const int64_t rows = pool.out_height();
  pool.in_height = 2;
  return {pool, rows};
}

base::Split split_of(const Strips& strips, int threads) {
  const Pool& pool = strips.pool;
  const int64_t reads = pool.out_height() * pool.out_width() * pool.window.kernel_height * pool.window.kernel_width;
  return base::split_for(pool.planes * strips.each * reads, kGrain, threads);
}

}  // namespace

void max_pool(const Pool& pool, const float* src, float* dst, int threads) {
  const Strips strips = strips_of(pool);
  base::parallel(split_of(strips, threads), [&](int thread, int count) {
    HWY_DYNAMIC_DISPATCH(max_share)(strips, src, dst, thread, count);
  });
}

void max_pool_backward(const Pool& pool, const float* src, const float* diff_dst, float* diff_src, bool through_relu,
                       int threads) {
  const Strips strips = strips_of(pool);
  base::parallel(split_of(strips, threads), [&](int thread, int count) {
    HWY_DYNAMIC_DISPATCH(max_backward_share)(strips, src, diff_dst, diff_src, through_relu, thread, count);
  });
}

void average_pool(const Pool& pool, const float* src, float* dst, int threads) {
  const Strips strips = whole_planes(pool);
  base::parallel(split_of(strips, threads), [&](int thread, int count) {
    HWY_DYNAMIC_DISPATCH(average_share)(strips, src, dst, thread, count);
  });
}

void average_pool_backward(const Pool& pool, const float* diff_dst, float* diff_src, int threads) {
  const Strips strips = whole_planes(pool);
  base::parallel(split_of(strips, threads), [&](int thread, int count) {
    HWY_DYNAMIC_DISPATCH(average_backward_share)(strips, diff_dst, diff_src, thread, count);
  });
}

}  // namespace lockstep::backend::cpu
#endif  // HWY_ONCE
