// Compiled without fused multiply-adds, which round differently from base/random.h.
#include "backend/cpu/kernels/random.h"

#include "base/parallel.h"
#include "base/random.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/random.cpp"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {
namespace {

using V = hn::Vec<Full>;
using Words = hn::RebindToUnsigned<Full>;
using W = hn::Vec<Words>;
using Wide = hn::Repartition<uint64_t, Full>;
using W64 = hn::Vec<Wide>;

/// Philox blocks in flight, one per 64-bit lane; they make two vectors of floats.
constexpr int64_t kBlocks = kLanes / 2;
constexpr int64_t kGroup = 2 * kLanes;

/// The four words of kBlocks blocks, each in the lower half of a 64-bit lane; the upper halves hold any value. Lanes
/// are ordered so that interleaving gives the elements in order, the even ones first.
struct Blocks {
  W64 word[4];
};

HWY_INLINE Blocks philox(const RandomRows& s, uint64_t row, int64_t first_block) {
  const Words du;
  const Wide dw;
  const W64 index = hn::Iota(dw, 0);
  const W64 half = hn::ShiftRight<1>(index);
  const W64 odd = hn::And(index, hn::Set(dw, 1));
  W64 block = hn::Add(half, hn::And(hn::Sub(hn::Zero(dw), odd), hn::Set(dw, kBlocks / 2)));
  block = hn::Add(block, hn::Set(dw, static_cast<uint64_t>(first_block)));
  W64 c0 = block;
  W64 c1 = hn::Set(dw, row);
  W64 c2 = hn::Set(dw, s.step);
  W64 c3 = hn::Set(dw, s.step >> 32);
  const W m0 = hn::Set(du, 0xD2511F53U);
  const W m1 = hn::Set(du, 0xCD9E8D57U);
  auto k0 = static_cast<uint32_t>(s.key);
  auto k1 = static_cast<uint32_t>(s.key >> 32);
  HWY_UNROLL(10)
  for (int round = 0; round < 10; ++round) {
    const W64 p0 = hn::MulEven(hn::BitCast(du, c0), m0);
    const W64 p1 = hn::MulEven(hn::BitCast(du, c2), m1);
    c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c1), hn::Set(dw, k0));
    c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c3), hn::Set(dw, k1));
    c1 = p1;
    c3 = p0;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

/// Two words side by side: `low` in the even 32-bit lanes, `high` in the odd ones.
HWY_INLINE W join(W64 low, W64 high) {
  const Wide dw;
  return hn::BitCast(Words(), hn::Or(hn::And(low, hn::Set(dw, 0xffffffffU)), hn::ShiftLeft<32>(high)));
}

/// The words in element order.
HWY_INLINE void in_order(const Blocks& b, W& first, W& second) {
  const Wide dw;
  const Words du;
  const W64 front = hn::BitCast(dw, join(b.word[0], b.word[1]));
  const W64 back = hn::BitCast(dw, join(b.word[2], b.word[3]));
  first = hn::BitCast(du, hn::InterleaveLower(dw, front, back));
  second = hn::BitCast(du, hn::InterleaveUpper(dw, front, back));
}

/// The upper 24 bits as a float: exact.
HWY_INLINE V to_float(W words) {
  const hn::RebindToSigned<Full> di;
  return hn::ConvertTo(Full(), hn::BitCast(di, hn::ShiftRight<8>(words)));
}

HWY_INLINE V uniform(W words) { return hn::Mul(to_float(words), hn::Set(Full(), 0x1p-24F)); }

// The next three follow base/random.h operation by operation.

HWY_INLINE V portable_log(V x) {
  const Full d;
  const hn::RebindToSigned<Full> di;
  const auto bits = hn::BitCast(di, x);
  const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));
  const V f = hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(exponent))), hn::Set(d, 1.0F));
  V sum = hn::Set(d, base::kLogTerms[0]);
  for (size_t i = 1; i < base::kLogTerms.size(); ++i) {
    sum = hn::Add(hn::Mul(sum, f), hn::Set(d, base::kLogTerms[i]));
  }
  const V square = hn::Mul(f, f);
  const V e = hn::ConvertTo(d, exponent);
  const V scaled = hn::Add(hn::Mul(hn::Mul(sum, f), square), hn::Mul(e, hn::Set(d, base::kLog2Low)));
  const V small = hn::Sub(scaled, hn::Mul(hn::Set(d, 0.5F), square));
  return hn::Add(hn::Add(f, small), hn::Mul(e, hn::Set(d, base::kLog2High)));
}

HWY_INLINE void portable_circle(V turns, V& cosine, V& sine) {
  const Full d;
  const hn::RebindToSigned<Full> di;
  const auto set = [d](float value) HWY_ATTR { return hn::Set(d, value); };
  const V quarters = hn::Floor(hn::Add(hn::Mul(set(4.0F), turns), set(0.5F)));
  const V angle = hn::Mul(hn::Sub(turns, hn::Mul(set(0.25F), quarters)), set(base::kTurn));
  const V z = hn::Mul(angle, angle);
  const auto three = [&](const std::array<float, 3>& terms) HWY_ATTR {
    const V first = hn::Add(hn::Mul(set(terms[0]), z), set(terms[1]));
    return hn::Add(hn::Mul(first, z), set(terms[2]));
  };
  const V s = hn::Add(hn::Mul(hn::Mul(three(base::kSinTerms), z), angle), angle);
  const V c4 = hn::Mul(three(base::kCosTerms), hn::Mul(z, z));
  const V c = hn::Add(hn::Sub(c4, hn::Mul(set(0.5F), z)), set(1.0F));
  // Quarter 1: (-s, c), 2: (-c, -s), 3: (s, -c).
  const auto quarter = hn::ConvertTo(di, quarters);
  const auto one = hn::Set(di, 1);
  const auto swapped = hn::MaskFromVec(hn::BitCast(d, hn::VecFromMask(di, hn::Eq(hn::And(quarter, one), one))));
  const auto sign_of = [&](hn::Vec<decltype(di)> q)
                           HWY_ATTR { return hn::BitCast(d, hn::ShiftLeft<30>(hn::And(q, hn::Set(di, 2)))); };
  cosine = hn::Xor(hn::IfThenElse(swapped, s, c), sign_of(hn::Add(quarter, one)));
  sine = hn::Xor(hn::IfThenElse(swapped, c, s), sign_of(quarter));
}

/// Normal values of kBlocks blocks in element order.
HWY_INLINE void normals(const Blocks& b, V& first, V& second) {
  const Full d;
  const V radius_words = hn::Add(to_float(join(b.word[0], b.word[2])), hn::Set(d, 1.0F));
  const V log = portable_log(hn::Mul(radius_words, hn::Set(d, 0x1p-24F)));
  const V radius = hn::Sqrt(hn::Mul(hn::Set(d, -2.0F), log));
  V c;
  V s;
  portable_circle(uniform(join(b.word[1], b.word[3])), c, s);
  const V even = hn::Mul(radius, c);
  const V odd = hn::Mul(radius, s);
  first = hn::InterleaveLower(d, even, odd);
  second = hn::InterleaveUpper(d, even, odd);
}

/// Calls body(blocks, element of the tensor, elements left in the row) for every group of every row.
template <class Body>
HWY_INLINE void for_groups(const RandomRows& s, base::Range rows, Body body) {
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    const uint64_t row = s.first_row + static_cast<uint64_t>(r);
    for (int64_t j = 0; j < s.width; j += kGroup) body(philox(s, row, j / 4), r * s.width + j, s.width - j);
  }
}

HWY_INLINE void store_group(V first, V second, float* dst, int64_t left) {
  const Full d;
  if (left >= kGroup) {
    hn::StoreU(first, d, dst);
    return hn::StoreU(second, d, dst + kLanes);
  }
  store_some(d, first, dst, std::min<int64_t>(left, kLanes));
  if (left > kLanes) store_some(d, second, dst + kLanes, left - kLanes);
}

void dropout_rows(const RandomRows& s, base::Range rows, float rate, float kept, const float* src, float* dst) {
  const Full d;
  const V threshold = hn::Set(d, rate);
  const V factor = hn::Set(d, kept);
  const auto apply = [&](W words, int64_t at, int64_t left) HWY_ATTR {
    const V x = left >= kLanes ? hn::LoadU(d, src + at) : load_some(d, src + at, std::max<int64_t>(left, 0));
    return hn::IfThenElseZero(hn::Ge(uniform(words), threshold), hn::Mul(x, factor));
  };
  for_groups(s, rows, [&](const Blocks& blocks, int64_t at, int64_t left) HWY_ATTR {
    W first;
    W second;
    in_order(blocks, first, second);
    const V low = apply(first, at, left);
    const V high = apply(second, at + kLanes, left - kLanes);
    store_group(low, high, dst + at, left);
  });
}

void uniform_rows(const RandomRows& s, base::Range rows, float low, float span, float* dst) {
  const Full d;
  const V start = hn::Set(d, low);
  const V factor = hn::Set(d, span);
  for_groups(s, rows, [&](const Blocks& blocks, int64_t at, int64_t left) HWY_ATTR {
    W first;
    W second;
    in_order(blocks, first, second);
    store_group(hn::Add(start, hn::Mul(factor, uniform(first))), hn::Add(start, hn::Mul(factor, uniform(second))),
                dst + at, left);
  });
}

void normal_rows(const RandomRows& s, base::Range rows, float mean, float deviation, float* dst) {
  const Full d;
  const V start = hn::Set(d, mean);
  const V factor = hn::Set(d, deviation);
  for_groups(s, rows, [&](const Blocks& blocks, int64_t at, int64_t left) HWY_ATTR {
    V first;
    V second;
    normals(blocks, first, second);
    store_group(hn::Add(start, hn::Mul(factor, first)), hn::Add(start, hn::Mul(factor, second)), dst + at, left);
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::backend::cpu {
namespace {

HWY_EXPORT(dropout_rows);
HWY_EXPORT(uniform_rows);
HWY_EXPORT(normal_rows);

/// Elements for which one more thread pays off.
constexpr int64_t kGrain = 8'192;

void for_rows(const RandomRows& s, int threads, base::FunctionRef<void(base::Range)> body) {
  base::parallel(base::split_for(s.rows * s.width, kGrain, threads),
                 [&](int thread, int count) { body(base::share(s.rows, thread, count)); });
}

}  // namespace

void dropout(const RandomRows& shape, float rate, float kept, const float* src, float* dst, int threads) {
  for_rows(shape, threads, [&](base::Range mine) {
    HWY_DYNAMIC_DISPATCH(dropout_rows)(shape, mine, rate, kept, src, dst);
  });
}

void random_uniform(const RandomRows& shape, float low, float span, float* dst, int threads) {
  for_rows(shape, threads, [&](base::Range mine) { HWY_DYNAMIC_DISPATCH(uniform_rows)(shape, mine, low, span, dst); });
}

void random_normal(const RandomRows& shape, float mean, float deviation, float* dst, int threads) {
  for_rows(shape, threads, [&](base::Range mine) {
    HWY_DYNAMIC_DISPATCH(normal_rows)(shape, mine, mean, deviation, dst);
  });
}

}  // namespace lockstep::backend::cpu
#endif  // HWY_ONCE
