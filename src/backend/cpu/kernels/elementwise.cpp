#include "backend/cpu/kernels/elementwise.h"

#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/elementwise.cpp"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/kernels/math-inl.h"
#include "backend/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {
namespace {

using V = hn::Vec<Full>;

// Sources of an operand.
struct Array {
  const float* data;
  HWY_INLINE V whole(int64_t i) const { return hn::LoadU(Full(), data + i); }
  HWY_INLINE V some(int64_t i, int64_t count) const { return load_some(Full(), data + i, count); }
};

struct Scalar {
  float value;
  HWY_INLINE V whole(int64_t) const { return hn::Set(Full(), value); }
  HWY_INLINE V some(int64_t, int64_t) const { return hn::Set(Full(), value); }
};

template <class Fn, class... Operands>
HWY_INLINE void map(float* dst, int64_t count, Fn fn, Operands... operands) {
  const Full d;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(fn(operands.whole(i)...), d, dst + i);
  if (const int64_t rest = count - i; rest > 0) store_some(d, fn(operands.some(i, rest)...), dst + i, rest);
}

void unary_share(UnaryFn fn, const float* src, float* dst, int64_t count, float alpha) {
  const Full d;
  const Array x{src};
  const V a = hn::Set(d, alpha);
  const V zero = hn::Zero(d);
  switch (fn) {
    case UnaryFn::relu:
      return map(
          dst, count, [zero](V v) HWY_ATTR { return hn::Max(zero, v); }, x);
    case UnaryFn::tanh:
      return map(
          dst, count, [d](V v) HWY_ATTR { return tanh_any(d, v); }, x);
    case UnaryFn::sigmoid:
      return map(
          dst, count, [d](V v) HWY_ATTR { return sigmoid_any(d, v); }, x);
    case UnaryFn::softplus:
      return map(
          dst, count, [d](V v) HWY_ATTR { return softplus_any(d, v); }, x);
    case UnaryFn::exp:
      return map(
          dst, count, [d](V v) HWY_ATTR { return exp_any(d, v); }, x);
    case UnaryFn::log:
      return map(
          dst, count, [d](V v) HWY_ATTR { return log_any(d, v); }, x);
    case UnaryFn::sqrt:
      return map(
          dst, count, [](V v) HWY_ATTR { return hn::Sqrt(v); }, x);
    case UnaryFn::square:
      return map(
          dst, count, [](V v) HWY_ATTR { return hn::Mul(v, v); }, x);
    case UnaryFn::neg:
      return map(
          dst, count, [](V v) HWY_ATTR { return hn::Neg(v); }, x);
    case UnaryFn::abs:
      return map(
          dst, count, [](V v) HWY_ATTR { return hn::Abs(v); }, x);
    case UnaryFn::scale:
      return map(
          dst, count, [a](V v) HWY_ATTR { return hn::Mul(a, v); }, x);
    case UnaryFn::add_scalar:
      return map(
          dst, count, [a](V v) HWY_ATTR { return hn::Add(a, v); }, x);
  }
}

template <class A, class B>
void binary_any(BinaryFn fn, A a, B b, float* dst, int64_t count) {
  const Full d;
  const V zero = hn::Zero(d);
  const V one = hn::Set(d, 1.0F);
  switch (fn) {
    case BinaryFn::add:
      return map(
          dst, count, [](V x, V y) HWY_ATTR { return hn::Add(x, y); }, a, b);
    case BinaryFn::sub:
      return map(
          dst, count, [](V x, V y) HWY_ATTR { return hn::Sub(x, y); }, a, b);
    case BinaryFn::mul:
      return map(
          dst, count, [](V x, V y) HWY_ATTR { return hn::Mul(x, y); }, a, b);
    case BinaryFn::div:
      return map(
          dst, count, [](V x, V y) HWY_ATTR { return hn::Div(x, y); }, a, b);
    case BinaryFn::max:
      return map(
          dst, count, [](V x, V y) HWY_ATTR { return hn::Max(x, y); }, a, b);
    case BinaryFn::min:
      return map(
          dst, count, [](V x, V y) HWY_ATTR { return hn::Min(x, y); }, a, b);
    case BinaryFn::relu_grad:
      return map(
          dst, count, [zero](V y, V g) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(y, zero), g); }, a, b);
    case BinaryFn::tanh_grad:
      return map(
          dst, count, [one](V y, V g) HWY_ATTR { return hn::Mul(g, hn::NegMulAdd(y, y, one)); }, a, b);
    case BinaryFn::sigmoid_grad:
      return map(
          dst, count, [one](V y, V g) HWY_ATTR { return hn::Mul(g, hn::Mul(y, hn::Sub(one, y))); }, a, b);
    case BinaryFn::softplus_grad:
      return map(
          dst, count, [d](V x, V g) HWY_ATTR { return hn::Mul(g, sigmoid_any(d, x)); }, a, b);
    case BinaryFn::abs_grad:
      return map(
          dst, count,
          [zero](V x, V g)
              HWY_ATTR { return hn::IfThenElse(hn::Gt(x, zero), g, hn::IfThenElseZero(hn::Lt(x, zero), hn::Neg(g))); },
          a, b);
  }
}

void max_share(const float* a, const float* b, const float* diff, float* dst, int64_t count) {
  map(
      dst, count, [](V x, V y, V g) HWY_ATTR { return hn::IfThenElseZero(hn::Ge(x, y), g); }, Array{a}, Array{b},
      Array{diff});
}

void binary_share(BinaryFn fn, const float* a, const float* b, float* dst, int64_t count) {
  binary_any(fn, Array{a}, Array{b}, dst, count);
}

void binary_right_share(BinaryFn fn, const float* a, float b, float* dst, int64_t count) {
  binary_any(fn, Array{a}, Scalar{b}, dst, count);
}

void binary_left_share(BinaryFn fn, float a, const float* b, float* dst, int64_t count) {
  binary_any(fn, Scalar{a}, Array{b}, dst, count);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::backend::cpu {
namespace {

HWY_EXPORT(unary_share);
HWY_EXPORT(binary_share);
HWY_EXPORT(binary_right_share);
HWY_EXPORT(binary_left_share);
HWY_EXPORT(max_share);

/// Elements for which one more thread pays off, and the run of them that is never split.
constexpr int64_t kGrain = 4'096;
constexpr int64_t kTranscendentalGrain = 4'096;
constexpr int64_t kRun = 64;

bool is_transcendental(UnaryFn fn) {
  return fn == UnaryFn::tanh || fn == UnaryFn::sigmoid || fn == UnaryFn::softplus || fn == UnaryFn::exp ||
         fn == UnaryFn::log;
}

int64_t grain(UnaryFn fn) { return is_transcendental(fn) ? kTranscendentalGrain : kGrain; }

int64_t grain(BinaryFn fn) { return fn == BinaryFn::softplus_grad ? kTranscendentalGrain : kGrain; }

void for_range(int64_t count, int64_t per_thread, int threads, base::FunctionRef<void(int64_t, int64_t)> body) {
  base::parallel(base::split_for(count, per_thread, threads), [&](int thread, int parts) {
    const base::Range mine = base::share(count, thread, parts, kRun);
    body(mine.begin, mine.size());
  });
}

void for_rows(int64_t rows, int64_t count, int64_t per_thread, int threads, base::FunctionRef<void(int64_t)> body) {
  base::parallel(base::split_for(rows * count, per_thread, threads), [&](int thread, int parts) {
    const base::Range mine = base::share(rows, thread, parts);
    for (int64_t r = mine.begin; r < mine.end; ++r) body(r * count);
  });
}

}  // namespace

void unary(UnaryFn fn, const float* src, float* dst, int64_t count, float alpha, int threads) {
  for_range(count, grain(fn), threads, [&](int64_t at, int64_t size) {
    HWY_DYNAMIC_DISPATCH(unary_share)(fn, src + at, dst + at, size, alpha);
  });
}

void binary(BinaryFn fn, const float* a, const float* b, float* dst, int64_t count, int threads) {
  for_range(count, grain(fn), threads, [&](int64_t at, int64_t size) {
    HWY_DYNAMIC_DISPATCH(binary_share)(fn, a + at, b + at, dst + at, size);
  });
}

void binary_scalar_right(BinaryFn fn, const float* a, float b, float* dst, int64_t count, int threads) {
  for_range(count, grain(fn), threads, [&](int64_t at, int64_t size) {
    HWY_DYNAMIC_DISPATCH(binary_right_share)(fn, a + at, b, dst + at, size);
  });
}

void binary_scalar_left(BinaryFn fn, float a, const float* b, float* dst, int64_t count, int threads) {
  for_range(count, grain(fn), threads, [&](int64_t at, int64_t size) {
    HWY_DYNAMIC_DISPATCH(binary_left_share)(fn, a, b + at, dst + at, size);
  });
}

void binary_row_right(BinaryFn fn, const float* a, const float* row, float* dst, int64_t rows, int64_t count,
                      int threads) {
  for_rows(rows, count, grain(fn), threads, [&](int64_t at) {
    HWY_DYNAMIC_DISPATCH(binary_share)(fn, a + at, row, dst + at, count);
  });
}

void binary_row_left(BinaryFn fn, const float* row, const float* b, float* dst, int64_t rows, int64_t count,
                     int threads) {
  for_rows(rows, count, grain(fn), threads, [&](int64_t at) {
    HWY_DYNAMIC_DISPATCH(binary_share)(fn, row, b + at, dst + at, count);
  });
}

void max_backward(const float* a, const float* b, const float* diff, float* dst, int64_t count, int threads) {
  for_range(count, kGrain, threads, [&](int64_t at, int64_t size) {
    HWY_DYNAMIC_DISPATCH(max_share)(a + at, b + at, diff + at, dst + at, size);
  });
}

void fill(float value, float* dst, int64_t count, int threads) {
  for_range(count, kGrain, threads, [&](int64_t at, int64_t size) { std::fill_n(dst + at, size, value); });
}

}  // namespace lockstep::backend::cpu
#endif  // HWY_ONCE
