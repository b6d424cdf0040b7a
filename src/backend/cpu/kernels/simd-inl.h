// Parts that the vector kernels share, compiled once per instruction set: partial loads and stores, sums of lanes,
// transposes. Included after hwy/foreach_target.h, hence the unusual guard.
#if defined(LOCKSTEP_CPU_SIMD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_CPU_SIMD_INL_H
#undef LOCKSTEP_CPU_SIMD_INL_H
#else
#define LOCKSTEP_CPU_SIMD_INL_H
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// The widest vector of floats, and its lanes.
using Full = hn::ScalableTag<float>;
constexpr int kLanes = HWY_LANES(float);

/// Number of vector registers; it limits the size of a tile of accumulators.
constexpr int kRegisters = HWY_TARGET == HWY_AVX3 ? 32 : 16;

/// Keeps a value in a register. Compilers tend to repeat a load as operand of each use, but load ports are few.
template <class V>
HWY_INLINE V in_register(V v) {
  asm("" : "+v"(v.raw));
  return v;
}

/// Loads the first `count` lanes from memory, zeros behind them. Touches nothing else. 0 <= count <= lanes.
template <class D>
HWY_INLINE hn::Vec<D> load_some(D d, const float* src, int64_t count) {
#if HWY_TARGET <= HWY_AVX2
  return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count)), d, src);
#else
  if constexpr (hn::MaxLanes(D()) == 1) {
    return count > 0 ? hn::LoadU(d, src) : hn::Zero(d);
  } else {
    const hn::Half<D> half;
    constexpr auto kHalf = static_cast<int64_t>(hn::MaxLanes(half));
    if (count < kHalf) return hn::ZeroExtendVector(d, load_some(half, src, count));
    return hn::Combine(d, load_some(half, src + kHalf, count - kHalf), hn::LoadU(half, src));
  }
#endif
}

/// Stores the first `count` lanes and touches nothing else.
template <class D>
HWY_INLINE void store_some(D d, hn::Vec<D> v, float* dst, int64_t count) {
#if HWY_TARGET <= HWY_AVX3
  hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count)), d, dst);
#else
  if constexpr (hn::MaxLanes(D()) == 1) {
    if (count > 0) hn::StoreU(v, d, dst);
  } else {
    const hn::Half<D> half;
    constexpr auto kHalf = static_cast<int64_t>(hn::MaxLanes(half));
    if (count < kHalf) return store_some(half, hn::LowerHalf(half, v), dst, count);
    hn::StoreU(hn::LowerHalf(half, v), half, dst);
    store_some(half, hn::UpperHalf(half, v), dst + kHalf, count - kHalf);
  }
#endif
}

/// Returns the sums of the lanes of four vectors, as four lanes.
template <class D>
HWY_INLINE hn::Vec<hn::FixedTag<float, 4>> sum_lanes4(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> c, hn::Vec<D> e) {
  const hn::Repartition<double, D> pairs;
  const auto ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const auto ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const auto low = hn::BitCast(d, hn::InterleaveLower(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, ce)));
  const auto high = hn::BitCast(d, hn::InterleaveUpper(pairs, hn::BitCast(pairs, ab), hn::BitCast(pairs, ce)));
  const auto sums = hn::Add(low, high);
  if constexpr (hn::MaxLanes(D()) == 4) {
    return sums;
  } else {
    const hn::Half<D> half;
    const auto folded = hn::Add(hn::LowerHalf(half, sums), hn::UpperHalf(half, sums));
    if constexpr (hn::MaxLanes(D()) == 8) {
      return folded;
    } else {
      const hn::Half<hn::Half<D>> quarter;
      return hn::Add(hn::LowerHalf(quarter, folded), hn::UpperHalf(quarter, folded));
    }
  }
}

/// dst[i] = sum of the lanes of v[i], for Count vectors; dst has room for a multiple of four.
template <int Count, class D>
HWY_INLINE void sum_lanes(D d, const hn::Vec<D>* v, float* dst) {
  const auto zero = hn::Zero(d);
  HWY_UNROLL(8)
  for (int i = 0; i < Count; i += 4) {
    const auto sums = sum_lanes4(d, v[i], i + 1 < Count ? v[i + 1] : zero, i + 2 < Count ? v[i + 2] : zero,
                                 i + 3 < Count ? v[i + 3] : zero);
    hn::StoreU(sums, hn::FixedTag<float, 4>(), dst + i);
  }
}

/// Transposes each 4 x 4 block of four vectors.
template <class D>
HWY_INLINE void transpose_blocks(D d, hn::Vec<D>& a, hn::Vec<D>& b, hn::Vec<D>& c, hn::Vec<D>& e) {
  const auto ac_low = hn::InterleaveLower(d, a, c);
  const auto ac_high = hn::InterleaveUpper(d, a, c);
  const auto be_low = hn::InterleaveLower(d, b, e);
  const auto be_high = hn::InterleaveUpper(d, b, e);
  a = hn::InterleaveLower(d, ac_low, be_low);
  b = hn::InterleaveUpper(d, ac_low, be_low);
  c = hn::InterleaveLower(d, ac_high, be_high);
  e = hn::InterleaveUpper(d, ac_high, be_high);
}

/// Transposes as many vectors as they have lanes (4, 8 or 16).
template <class D>
HWY_INLINE void transpose(D d, hn::Vec<D>* rows) {
  constexpr int kCount = static_cast<int>(hn::MaxLanes(D()));
  using V = hn::Vec<D>;
  HWY_UNROLL(4)
  for (int i = 0; i < kCount; i += 4) transpose_blocks(d, rows[i], rows[i + 1], rows[i + 2], rows[i + 3]);
  if constexpr (kCount == 8) {
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      const V low = rows[i];
      const V high = rows[i + 4];
      rows[i] = hn::ConcatLowerLower(d, high, low);
      rows[i + 4] = hn::ConcatUpperUpper(d, high, low);
    }
  }
#if HWY_TARGET == HWY_AVX3
  if constexpr (kCount == 16) {
    HWY_UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      const auto a = rows[i].raw;
      const auto b = rows[i + 4].raw;
      const auto c = rows[i + 8].raw;
      const auto e = rows[i + 12].raw;
      const auto ab_even = _mm512_shuffle_f32x4(a, b, 0x88);  // blocks 0 and 2 of each
      const auto ab_odd = _mm512_shuffle_f32x4(a, b, 0xdd);
      const auto ce_even = _mm512_shuffle_f32x4(c, e, 0x88);
      const auto ce_odd = _mm512_shuffle_f32x4(c, e, 0xdd);
      rows[i] = V{_mm512_shuffle_f32x4(ab_even, ce_even, 0x88)};
      rows[i + 4] = V{_mm512_shuffle_f32x4(ab_odd, ce_odd, 0x88)};
      rows[i + 8] = V{_mm512_shuffle_f32x4(ab_even, ce_even, 0xdd)};
      rows[i + 12] = V{_mm512_shuffle_f32x4(ab_odd, ce_odd, 0xdd)};
    }
  }
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#endif
