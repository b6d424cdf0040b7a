// Floats on the wire: as they are, or rounded to 16 bits (to nearest, ties to even, in every build and on every machine
// the same). Infinities stay infinite, a NaN stays a NaN, what is too large for float16 becomes infinite. Free
// functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/stream.h"

namespace lockstep::transport {

/// Header::element of a payload of numbers.
enum class Element : uint32_t { kFloat32 = 1, kBfloat16 = 2, kFloat16 = 3 };

[[nodiscard]] constexpr size_t bytes_of(Element element) { return element == Element::kFloat32 ? 4 : 2; }

/// `to` has bytes_of(element) for each number, at any address.
void pack(Element element, std::span<const float> from, std::span<std::byte> to);
void unpack(Element element, std::span<const std::byte> from, std::span<float> to);

/// The numbers of a received frame, whose pieces may part an element. Fails where the header names another element or
/// the payload is not of `to`'s size.
base::Status unpack(const Frame& frame, std::span<float> to);

}  // namespace lockstep::transport
