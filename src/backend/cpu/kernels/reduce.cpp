#include "backend/cpu/kernels/reduce.h"

#include <array>

#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/reduce.cpp"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {
namespace {

using V = hn::Vec<Full>;

constexpr int64_t kTogether = 4;

/// Sums of `count` (at most a vector) neighbouring columns: four rows at a time, so that additions overlap.
HWY_INLINE V column_vector(const float* src, int64_t rows, int64_t stride, int64_t count) {
  const Full d;
  const bool whole = count == kLanes;
  V acc[kTogether] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  int64_t r = 0;
  for (; r + kTogether <= rows; r += kTogether) {
    HWY_UNROLL(4)
    for (int i = 0; i < kTogether; ++i) {
      const float* row = src + (r + i) * stride;
      acc[i] = hn::Add(acc[i], whole ? hn::LoadU(d, row) : load_some(d, row, count));
    }
  }
  for (; r < rows; ++r) acc[0] = hn::Add(acc[0], load_some(d, src + r * stride, count));
  return hn::Add(hn::Add(acc[0], acc[1]), hn::Add(acc[2], acc[3]));
}

void column_share(const float* src, float* dst, int64_t rows, int64_t stride, int64_t count) {
  const Full d;
  for (int64_t i = 0; i < count; i += kLanes) {
    const int64_t some = std::min<int64_t>(kLanes, count - i);
    const V sums = column_vector(src + i, rows, stride, some);
    if (some == kLanes) {
      hn::StoreU(sums, d, dst + i);
    } else {
      store_some(d, sums, dst + i, some);
    }
  }
}

float row_sum(const float* src, int64_t count) {
  const Full d;
  V acc[kTogether] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  int64_t i = 0;
  for (; i + kTogether * kLanes <= count; i += kTogether * kLanes) {
    HWY_UNROLL(4)
    for (int j = 0; j < kTogether; ++j) acc[j] = hn::Add(acc[j], hn::LoadU(d, src + i + j * kLanes));
  }
  for (; i < count; i += kLanes) {
    acc[0] = hn::Add(acc[0], load_some(d, src + i, std::min<int64_t>(kLanes, count - i)));
  }
  HWY_ALIGN float sums[kTogether];
  sum_lanes<kTogether>(d, acc, sums);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void row_share(const float* src, float* dst, int64_t rows, int64_t count) {
  for (int64_t r = 0; r < rows; ++r) dst[r] = row_sum(src + r * count, count);
}

double sum_share(const float* src, int64_t count) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> half;
  constexpr int64_t kStep = kLanes / 2;
  auto a = hn::Zero(d);
  auto b = hn::Zero(d);
  int64_t i = 0;
  for (; i + 2 * kStep <= count; i += 2 * kStep) {
    a = hn::Add(a, hn::PromoteTo(d, hn::LoadU(half, src + i)));
    b = hn::Add(b, hn::PromoteTo(d, hn::LoadU(half, src + i + kStep)));
  }
  double sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(a, b)));
  for (; i < count; ++i) sum += src[i];
  return sum;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::backend::cpu {
namespace {

HWY_EXPORT(column_share);
HWY_EXPORT(row_share);
HWY_EXPORT(sum_share);

/// Elements for which one more thread pays off.
constexpr int64_t kGrain = 16'384;

/// Number of parts in which a long array is summed; independent of the threads. The parts are added in order.
constexpr int kParts = 64;

/// Columns that one thread takes together: a cache line.
constexpr int64_t kColumns = 16;

}  // namespace

void column_sums(const float* src, float* dst, int64_t rows, int64_t count, int threads) {
  base::parallel(base::split_for(rows * count, kGrain, threads), [&](int thread, int parts) {
    const base::Range mine = base::share(count, thread, parts, kColumns);
    HWY_DYNAMIC_DISPATCH(column_share)(src + mine.begin, dst + mine.begin, rows, count, mine.size());
  });
}

void row_sums(const float* src, float* dst, int64_t rows, int64_t count, int threads) {
  base::parallel(base::split_for(rows * count, kGrain, threads), [&](int thread, int parts) {
    const base::Range mine = base::share(rows, thread, parts);
    HWY_DYNAMIC_DISPATCH(row_share)(src + mine.begin * count, dst + mine.begin, mine.size(), count);
  });
}

double sum(const float* src, int64_t count, int threads) {
  std::array<double, kParts> parts{};
  base::parallel(base::split_for(count, kGrain, threads), [&](int thread, int of) {
    const base::Range mine = base::share(kParts, thread, of);
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      const base::Range range = base::share(count, static_cast<int>(i), kParts, kColumns);
      parts[static_cast<size_t>(i)] = HWY_DYNAMIC_DISPATCH(sum_share)(src + range.begin, range.size());
    }
  });
  double sum = 0;
  for (const double part : parts) sum += part;
  return sum;
}

}  // namespace lockstep::backend::cpu
#endif  // HWY_ONCE
