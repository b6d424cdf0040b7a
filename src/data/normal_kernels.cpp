#include "data/normal_kernels.h"

#include <algorithm>
#include <array>
#include <numbers>

#include "base/random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "data/normal_kernels.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::data {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;
using Words = hn::ScalableTag<uint32_t>;
using Wide = hn::ScalableTag<uint64_t>;
constexpr size_t kLanes = HWY_LANES(float);
constexpr size_t kMostLanes = 16;
static_assert(kLanes <= kMostLanes);

/// The four words of one block per lane. Words are kept in lanes of 64 bits, whose upper halves the multiplication
/// ignores; so they come as two halves that are joined at the end.
struct Blocks {
  hn::Vec<Wide> c0, c1, c2, c3;
};

HWY_INLINE Blocks philox(Wide d, uint64_t key, uint64_t row, hn::Vec<Wide> low) {
  const Words words;
  const auto wide_product = [&](hn::Vec<Wide> value, uint32_t factor) {
    return hn::MulEven(hn::BitCast(words, value), hn::Set(words, factor));
  };
  Blocks b{low, hn::ShiftRight<32>(low), hn::Set(d, row), hn::Set(d, row >> 32)};
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const auto p0 = wide_product(b.c0, 0xD2511F53);
    const auto p1 = wide_product(b.c2, 0xCD9E8D57);
    b = {hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), b.c1), hn::Set(d, k0)), p1,
         hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), b.c3), hn::Set(d, k1)), p0};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return b;
}

HWY_INLINE hn::Vec<Words> join(hn::Vec<Wide> upper, hn::Vec<Wide> lower) {
  const Words words;
  return hn::ConcatEven(words, hn::BitCast(words, upper), hn::BitCast(words, lower));
}

HWY_INLINE hn::Vec<Floats> fraction(Floats d, hn::Vec<Words> bits) {
  const hn::Rebind<int32_t, Floats> ints;
  return hn::ConvertTo(d, hn::BitCast(ints, hn::ShiftRight<8>(bits)));
}

/// base::normal2, with the radius multiplied by the deviation.
HWY_INLINE void normals(Floats d, float deviation, hn::Vec<Words> a, hn::Vec<Words> b, hn::Vec<Floats>& first,
                        hn::Vec<Floats>& second) {
  const auto u = hn::Mul(hn::Add(fraction(d, a), hn::Set(d, 1.0F)), hn::Set(d, 0x1p-24F));
  const auto radius = hn::Mul(hn::Sqrt(hn::Mul(hn::Set(d, -2.0F), hn::Log(d, u))), hn::Set(d, deviation));
  const auto angle = hn::Mul(fraction(d, b), hn::Set(d, 2.0F * std::numbers::pi_v<float> * 0x1p-24F));
  first = hn::Mul(radius, hn::Cos(d, angle));
  second = hn::Mul(radius, hn::Sin(d, angle));
}

/// Fills 4 * kLanes values from block `block` on.
HWY_INLINE void fill_group(uint64_t key, uint64_t row, float deviation, uint64_t block, float* out) {
  const Floats d;
  const Wide wide;
  constexpr size_t kHalf = kLanes / 2;
  const auto low = hn::Iota(wide, block);
  const Blocks lower = philox(wide, key, row, low);
  const Blocks upper = philox(wide, key, row, hn::Add(low, hn::Set(wide, kHalf)));
  hn::Vec<Floats> v0, v1, v2, v3;
  normals(d, deviation, join(upper.c0, lower.c0), join(upper.c1, lower.c1), v0, v1);
  normals(d, deviation, join(upper.c2, lower.c2), join(upper.c3, lower.c3), v2, v3);
  hn::StoreInterleaved4(v0, v1, v2, v3, d, out);
}

void fill(uint64_t key, uint64_t row, float deviation, float* out, size_t count) {
  constexpr size_t kGroup = 4 * kLanes;
  size_t done = 0;
  for (; done + kGroup <= count; done += kGroup) fill_group(key, row, deviation, done / 4, out + done);
  if (done == count) return;
  alignas(64) std::array<float, 4 * kMostLanes> rest;
  fill_group(key, row, deviation, done / 4, rest.data());
  std::copy_n(rest.begin(), count - done, out + done);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::data
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::data {
namespace {
HWY_EXPORT(fill);
}  // namespace

void fill_normal(uint64_t seed, uint64_t stream, uint64_t row, float deviation, std::span<float> out) {
  const uint64_t key = base::Philox(seed, stream).key();
  HWY_DYNAMIC_DISPATCH(fill)(key, row, deviation, out.data(), out.size());
}

}  // namespace lockstep::data
#endif
