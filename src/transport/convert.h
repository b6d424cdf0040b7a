// Floats on the wire: unchanged, or rounded to 16 bits (to nearest, ties to even; the same in every build and on every
// machine). Infinities stay infinite, a NaN stays a NaN, numbers too large for float16 become infinite. Free functions,
// any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/stream.h"

namespace lockstep::transport {

/// Header::element of a payload of numbers.
enum class Element : uint32_t { kFloat32 = 1, kBfloat16 = 2, kFloat16 = 3 };

[[nodiscard]] constexpr size_t bytes_of(Element element) { return element == Element::kFloat32 ? 4 : 2; }

/// Converts numbers to bytes. `to` has bytes_of(element) bytes for each number, at any address.
void pack(Element element, std::span<const float> from, std::span<std::byte> to);
void unpack(Element element, std::span<const std::byte> from, std::span<float> to);

/// Converts the numbers of a received frame, whose pieces may split an element. Fails if the header names another
/// element or the payload is not of `to`'s size.
base::Status unpack(const Frame& frame, std::span<float> to);

}  // namespace lockstep::transport
