// Loads and stores vectors of floats as bfloat16. Included once per target, hence the unusual guard.
#if defined(LOCKSTEP_CPU_BF16_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_CPU_BF16_INL_H
#undef LOCKSTEP_CPU_BF16_INL_H
#else
#define LOCKSTEP_CPU_BF16_INL_H
#endif

#include "backend/cpu/kernels/bf16.h"
#include "backend/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {

template <class D>
HWY_INLINE hn::Vec<D> load_bf16(D d, const Bf16* src) {
  const hn::Rebind<uint32_t, D> d32;
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(hn::Rebind<uint16_t, D>(), src))));
}

template <class D>
HWY_INLINE void store_bf16(D, hn::Vec<D> v, Bf16* dst) {
  const hn::Rebind<uint32_t, D> d32;
  const auto bits = hn::BitCast(d32, v);
  const auto high = hn::ShiftRight<16>(bits);
  const auto to_even = hn::Add(hn::And(high, hn::Set(d32, 1U)), hn::Set(d32, 0x7fffU));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, to_even));
  const auto quiet = hn::Or(high, hn::Set(d32, 0x40U));
  const auto kept = hn::IfThenElse(hn::RebindMask(d32, hn::IsNaN(v)), quiet, rounded);
  const hn::Rebind<int32_t, D> signed32;  // no value is negative, so narrowing never saturates
  const hn::Rebind<uint16_t, D> d16;
  hn::StoreU(hn::DemoteTo(d16, hn::BitCast(signed32, kept)), d16, dst);
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#endif
