#include "collective/sum.h"

#include <algorithm>
#include <array>

#include "transport/convert.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "collective/sum.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::collective {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

void add_floats(const float* a, const float* b, float* to, size_t count) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = HWY_LANES(float);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, to + i);
  for (; i < count; ++i) to[i] = a[i] + b[i];
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::collective
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::collective {
namespace {

HWY_EXPORT(add_floats);

/// Widens, adds and rounds one piece at a time, which stays in the first cache.
void add_halves(transport::Element element, const std::byte* a, const std::byte* b, std::byte* to, size_t count) {
  constexpr size_t kPiece = 1024;
  alignas(64) std::array<float, kPiece> left;
  alignas(64) std::array<float, kPiece> right;
  for (size_t begin = 0; begin < count; begin += kPiece) {
    const size_t n = std::min(kPiece, count - begin);
    transport::unpack(element, {a + 2 * begin, 2 * n}, {left.data(), n});
    transport::unpack(element, {b + 2 * begin, 2 * n}, {right.data(), n});
    HWY_DYNAMIC_DISPATCH(add_floats)(left.data(), right.data(), left.data(), n);
    transport::pack(element, {left.data(), n}, {to + 2 * begin, 2 * n});
  }
}

}  // namespace

void add(Element element, const void* a, const void* b, void* to, size_t count) {
  const auto halves = [&](transport::Element kind) {
    add_halves(kind, static_cast<const std::byte*>(a), static_cast<const std::byte*>(b), static_cast<std::byte*>(to),
               count);
  };
  switch (element) {
    case Element::float32:
      HWY_DYNAMIC_DISPATCH(add_floats)
      (static_cast<const float*>(a), static_cast<const float*>(b), static_cast<float*>(to), count);
      break;
    case Element::bfloat16:
      halves(transport::Element::kBfloat16);
      break;
    case Element::float16:
      halves(transport::Element::kFloat16);
      break;
  }
}

}  // namespace lockstep::collective
#endif  // HWY_ONCE
