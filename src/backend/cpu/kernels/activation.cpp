#include "backend/cpu/kernels/activation.h"

#include "backend/cpu/kernels/gemm_parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/activation.cpp"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/kernels/math-inl.h"
#include "backend/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {
namespace {

template <class Fn>
void map(float* values, int64_t count, Fn fn) {
  const Full d;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(fn(hn::LoadU(d, values + i)), d, values + i);
  if (i < count) store_some(d, fn(load_some(d, values + i, count - i)), values + i, count - i);
}

void smooth(Activation activation, float* values, int64_t count) {
  const Full d;
  using V = hn::Vec<Full>;
  if (activation == Activation::tanh) map(values, count, [d](V x) HWY_ATTR { return tanh_any(d, x); });
  if (activation == Activation::sigmoid) map(values, count, [d](V x) HWY_ATTR { return sigmoid_any(d, x); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::backend::cpu {
namespace {

HWY_EXPORT(smooth);

}  // namespace

void activate_smooth(Activation activation, float* values, int64_t count) {
  HWY_DYNAMIC_DISPATCH(smooth)(activation, values, count);
}

void gemm_activate(const Gemm& shape, float* c, int64_t rows, int64_t columns) {
  if (!is_smooth(shape.activation)) return;
  if (columns == shape.ldc) return activate_smooth(shape.activation, c, rows * columns);
  for (int64_t r = 0; r < rows; ++r) activate_smooth(shape.activation, c + r * shape.ldc, columns);
}

}  // namespace lockstep::backend::cpu
#endif  // HWY_ONCE
