// Functions of vectors of floats, compiled once per instruction set: Highway's, corrected at the ends of their range
// (infinities, NaN), and functions built from them. Included after hwy/foreach_target.h.
#if defined(LOCKSTEP_CPU_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_CPU_MATH_INL_H
#undef LOCKSTEP_CPU_MATH_INL_H
#else
#define LOCKSTEP_CPU_MATH_INL_H
#endif

#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

/// Returns `value`, or NaN where x is NaN.
template <class V>
HWY_INLINE V keep_nan(V x, V value) {
  return hn::IfThenElse(hn::Eq(x, x), value, x);
}

/// exp(x) for x <= 0 (and NaN).
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_negative(D d, V x) {
  return keep_nan(x, hn::Exp(d, x));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_any(D d, V x) {
  const V inf = hn::Set(d, std::numeric_limits<float>::infinity());
  const V value = hn::Exp(d, hn::Min(x, hn::Set(d, 89.0F)));
  return keep_nan(x, hn::IfThenElse(hn::Gt(x, hn::Set(d, 88.72284F)), inf, value));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V log_any(D d, V x) {
  const V zero = hn::Zero(d);
  const V inf = hn::Set(d, std::numeric_limits<float>::infinity());
  const V value = hn::IfThenElse(hn::Eq(x, inf), inf, hn::Log(d, x));
  const V at_zero = hn::IfThenElse(hn::Eq(x, zero), hn::Neg(inf), value);
  return hn::IfThenElse(hn::Ge(x, zero), at_zero, hn::Set(d, std::numeric_limits<float>::quiet_NaN()));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh_any(D d, V x) {
  return keep_nan(x, hn::Tanh(d, x));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V sigmoid_any(D d, V x) {
  const V one = hn::Set(d, 1.0F);
  const V e = exp_negative(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(d)), e, one), hn::Add(one, e));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE V softplus_any(D d, V x) {
  const V e = exp_negative(d, hn::Neg(hn::Abs(x)));
  return keep_nan(x, hn::Add(hn::Max(x, hn::Zero(d)), hn::Log1p(d, e)));
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#endif
