#include "backend/cpu/kernels/bf16.h"

#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/bf16.cpp"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/kernels/bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {
namespace {

void narrow_range(const float* src, Bf16* dst, int64_t count) {
  const Full d;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) store_bf16(d, hn::LoadU(d, src + i), dst + i);
  for (; i < count; ++i) dst[i] = narrow(src[i]);
}

void widen_range(const Bf16* src, float* dst, int64_t count) {
  const Full d;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(load_bf16(d, src + i), d, dst + i);
  for (; i < count; ++i) dst[i] = widen(src[i]);
}

// A positive bfloat16 is a positive int16, so that ReLU needs no floats. Positive NaN passes, as it does in float32.
void relu_range(const Bf16* src, Bf16* dst, int64_t count) {
  const hn::ScalableTag<int16_t> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const auto* from = reinterpret_cast<const int16_t*>(src);
  auto* to = reinterpret_cast<int16_t*>(dst);
  int64_t i = 0;
  for (; i + step <= count; i += step) hn::StoreU(hn::Max(hn::LoadU(d, from + i), hn::Zero(d)), d, to + i);
  for (; i < count; ++i) to[i] = std::max<int16_t>(from[i], 0);
}

void relu_grad_range(const Bf16* y, const Bf16* diff, Bf16* dst, int64_t count) {
  const hn::ScalableTag<int16_t> d;
  const auto step = static_cast<int64_t>(hn::Lanes(d));
  const auto* result = reinterpret_cast<const int16_t*>(y);
  const auto* from = reinterpret_cast<const int16_t*>(diff);
  auto* to = reinterpret_cast<int16_t*>(dst);
  int64_t i = 0;
  for (; i + step <= count; i += step) {
    const auto positive = hn::Gt(hn::LoadU(d, result + i), hn::Zero(d));
    hn::StoreU(hn::IfThenElseZero(positive, hn::LoadU(d, from + i)), d, to + i);
  }
  for (; i < count; ++i) to[i] = result[i] > 0 ? from[i] : int16_t{0};
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::backend::cpu {
namespace {

HWY_EXPORT(narrow_range);
HWY_EXPORT(widen_range);
HWY_EXPORT(relu_range);
HWY_EXPORT(relu_grad_range);

/// Elements for which one more thread pays off.
constexpr int64_t kGrain = 16'384;
/// Elements in a cache line of the narrower type.
constexpr int64_t kLine = 32;

template <class Body>
void for_ranges(int64_t count, int threads, Body body) {
  base::parallel(base::split_for(count, kGrain, threads), [&](int part, int parts) {
    const base::Range mine = base::share(count, part, parts, kLine);
    body(mine.begin, mine.size());
  });
}

}  // namespace

void to_bf16(const float* src, Bf16* dst, int64_t count, int threads) {
  for_ranges(count, threads, [&](int64_t at, int64_t size) {
    HWY_DYNAMIC_DISPATCH(narrow_range)(src + at, dst + at, size);
  });
}

void from_bf16(const Bf16* src, float* dst, int64_t count, int threads) {
  for_ranges(count, threads, [&](int64_t at, int64_t size) {
    HWY_DYNAMIC_DISPATCH(widen_range)(src + at, dst + at, size);
  });
}

void relu_bf16(const Bf16* src, Bf16* dst, int64_t count, int threads) {
  for_ranges(count, threads, [&](int64_t at, int64_t size) {
    HWY_DYNAMIC_DISPATCH(relu_range)(src + at, dst + at, size);
  });
}

void relu_grad_bf16(const Bf16* y, const Bf16* diff, Bf16* dst, int64_t count, int threads) {
  for_ranges(count, threads, [&](int64_t at, int64_t size) {
    HWY_DYNAMIC_DISPATCH(relu_grad_range)(y + at, diff + at, dst + at, size);
  });
}

}  // namespace lockstep::backend::cpu
#endif
