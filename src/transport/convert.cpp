#include "transport/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transport/convert.cpp"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::transport {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Bits = hn::ScalableTag<uint32_t>;
using Floats = hn::ScalableTag<float>;
using Half = hn::Rebind<uint16_t, Bits>;
using Vec = hn::Vec<Bits>;
constexpr size_t kLanes = HWY_LANES(uint32_t);

constexpr uint32_t kInfinity = 0x7f800000;

/// Adds half of the part that is cut off, a little less if the result would be even. Cutting then rounds to nearest.
template <int kCut>
HWY_INLINE Vec round_for_cut(Bits d, Vec v) {
  const auto odd = hn::And(hn::ShiftRight<kCut>(v), hn::Set(d, 1));
  return hn::Add(v, hn::Add(odd, hn::Set(d, (1U << (kCut - 1)) - 1)));
}

struct Bfloat16 {
  static HWY_INLINE Vec narrow(Bits d, Vec v) {
    const auto magnitude = hn::And(v, hn::Set(d, 0x7fffffff));
    const auto rounded = hn::ShiftRight<16>(round_for_cut<16>(d, v));
    const auto nan = hn::Or(hn::ShiftRight<16>(v), hn::Set(d, 0x40));
    return hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, kInfinity)), nan, rounded);
  }
  static HWY_INLINE Vec widen(Bits /*d*/, Vec v) { return hn::ShiftLeft<16>(v); }
};

struct Float16 {
  // float16's exponents are biased by 15, float32's by 127. 2^-24, the unit of float16's denormals, is the last bit of
  // 0.5.
  static constexpr uint32_t kRebias = 112U << 23;
  static constexpr uint32_t kHalf = 0x3f000000;

  static HWY_INLINE Vec narrow(Bits d, Vec v) {
    const Floats df;
    const auto magnitude = hn::And(v, hn::Set(d, 0x7fffffff));
    const auto sign = hn::ShiftRight<16>(hn::Xor(v, magnitude));
    const auto normal = hn::ShiftRight<13>(round_for_cut<13>(d, hn::Sub(magnitude, hn::Set(d, kRebias))));
    const auto shifted = hn::Add(hn::BitCast(df, magnitude), hn::Set(df, 0.5F));
    const auto denormal = hn::Sub(hn::BitCast(d, shifted), hn::Set(d, kHalf));
    auto result =
        hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x38800000)), denormal, hn::Min(normal, hn::Set(d, 0x7c00)));
    const auto nan = hn::Or(hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 0x3ff)), hn::Set(d, 0x7e00));
    result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, kInfinity)), nan, result);
    return hn::Or(result, sign);
  }
  static HWY_INLINE Vec widen(Bits d, Vec v) {
    const Floats df;
    const auto magnitude = hn::And(v, hn::Set(d, 0x7fff));
    const auto sign = hn::ShiftLeft<16>(hn::Xor(v, magnitude));
    const auto normal = hn::Add(hn::ShiftLeft<13>(magnitude), hn::Set(d, kRebias));
    const auto half = hn::BitCast(df, hn::Add(magnitude, hn::Set(d, kHalf)));
    const auto denormal = hn::BitCast(d, hn::Sub(half, hn::Set(df, 0.5F)));
    auto result = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x400)), denormal, normal);
    const auto special = hn::Add(normal, hn::Set(d, kRebias));
    const auto quiet = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7c00)), hn::Set(d, 0x400000), hn::Zero(d));
    result = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7bff)), hn::Or(special, quiet), result);
    return hn::Or(result, sign);
  }
};

template <class Format>
HWY_INLINE void narrow_vector(const float* from, uint16_t* to) {
  const Bits d;
  const auto bits = hn::BitCast(d, hn::LoadU(Floats(), from));
  hn::StoreU(hn::DemoteTo(Half(), hn::BitCast(hn::RebindToSigned<Bits>(), Format::narrow(d, bits))), Half(), to);
}

template <class Format>
HWY_INLINE void widen_vector(const uint16_t* from, float* to) {
  const Bits d;
  const auto bits = hn::PromoteTo(d, hn::LoadU(Half(), from));
  hn::StoreU(hn::BitCast(Floats(), Format::widen(d, bits)), Floats(), to);
}

/// The bytes may be unaligned: they go through an aligned buffer, which the compiler keeps in registers.
template <class Format>
void narrow_all(const float* from, std::byte* to, size_t count) {
  alignas(64) std::array<uint16_t, kLanes> out;
  alignas(64) std::array<float, kLanes> in{};
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    narrow_vector<Format>(from + i, out.data());
    std::memcpy(to + i * sizeof(uint16_t), out.data(), sizeof(out));
  }
  if (i == count) return;
  std::memcpy(in.data(), from + i, (count - i) * sizeof(float));
  narrow_vector<Format>(in.data(), out.data());
  std::memcpy(to + i * sizeof(uint16_t), out.data(), (count - i) * sizeof(uint16_t));
}

template <class Format>
void widen_all(const std::byte* from, float* to, size_t count) {
  alignas(64) std::array<uint16_t, kLanes> in{};
  alignas(64) std::array<float, kLanes> out;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    std::memcpy(in.data(), from + i * sizeof(uint16_t), sizeof(in));
    widen_vector<Format>(in.data(), to + i);
  }
  if (i == count) return;
  std::memcpy(in.data(), from + i * sizeof(uint16_t), (count - i) * sizeof(uint16_t));
  widen_vector<Format>(in.data(), out.data());
  std::memcpy(to + i, out.data(), (count - i) * sizeof(float));
}

void to_bfloat16(const float* from, std::byte* to, size_t count) { narrow_all<Bfloat16>(from, to, count); }
void to_float16(const float* from, std::byte* to, size_t count) { narrow_all<Float16>(from, to, count); }
void from_bfloat16(const std::byte* from, float* to, size_t count) { widen_all<Bfloat16>(from, to, count); }
void from_float16(const std::byte* from, float* to, size_t count) { widen_all<Float16>(from, to, count); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::transport
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::transport {

HWY_EXPORT(to_bfloat16);
HWY_EXPORT(to_float16);
HWY_EXPORT(from_bfloat16);
HWY_EXPORT(from_float16);

namespace {

void require_size(Element element, size_t numbers, size_t bytes) {
  if (bytes != numbers * bytes_of(element)) {
    throw UsageError(fmt::format("{} bytes do not hold {} numbers of {} bytes", bytes, numbers, bytes_of(element)));
  }
}

}  // namespace

void pack(Element element, std::span<const float> from, std::span<std::byte> to) {
  require_size(element, from.size(), to.size());
  switch (element) {
    case Element::kFloat32:
      std::memcpy(to.data(), from.data(), to.size());
      break;
    case Element::kBfloat16:
      HWY_DYNAMIC_DISPATCH(to_bfloat16)(from.data(), to.data(), from.size());
      break;
    case Element::kFloat16:
      HWY_DYNAMIC_DISPATCH(to_float16)(from.data(), to.data(), from.size());
      break;
  }
}

void unpack(Element element, std::span<const std::byte> from, std::span<float> to) {
  require_size(element, to.size(), from.size());
  switch (element) {
    case Element::kFloat32:
      std::memcpy(to.data(), from.data(), from.size());
      break;
    case Element::kBfloat16:
      HWY_DYNAMIC_DISPATCH(from_bfloat16)(from.data(), to.data(), to.size());
      break;
    case Element::kFloat16:
      HWY_DYNAMIC_DISPATCH(from_float16)(from.data(), to.data(), to.size());
      break;
  }
}

base::Status unpack(const Frame& frame, std::span<float> to) {
  const auto element = static_cast<Element>(frame.header.element);
  if (element != Element::kFloat32 && element != Element::kBfloat16 && element != Element::kFloat16) {
    return base::Failure{base::FailureKind::corrupt,
                         fmt::format("frame with elements of type {}; 1 to 3 are allowed", frame.header.element)};
  }
  if (frame.payload_size() != to.size() * bytes_of(element)) {
    return base::Failure{base::FailureKind::corrupt, fmt::format("frame with {} bytes for {} numbers of {} bytes",
                                                                 frame.payload_size(), to.size(), bytes_of(element))};
  }
  if (element == Element::kFloat32) {
    frame.copy_to(std::as_writable_bytes(to));
    return {};
  }
  std::array<std::byte, 2> parted{};
  bool half = false;  // the first byte of `parted` has been read
  for (std::span<const std::byte> piece : frame.pieces()) {
    if (half) {
      parted[1] = piece.front();
      piece = piece.subspan(1);
      unpack(element, parted, to.first(1));
      to = to.subspan(1);
    }
    const size_t whole = piece.size() / 2;
    unpack(element, piece.first(whole * 2), to.first(whole));
    to = to.subspan(whole);
    half = piece.size() % 2 == 1;
    if (half) parted[0] = piece.back();
  }
  return {};
}

}  // namespace lockstep::transport
#endif  // HWY_ONCE
