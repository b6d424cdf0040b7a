// CRC-32C (Castagnoli), the checksum of TensorBoard's records. A free function, any thread.
#pragma once

#include <cstdint>
#include <span>

namespace lockstep::observe {

uint32_t crc32c(std::span<const uint8_t> bytes);

/// As it stands in a record, so that a checksum of bytes that hold their own checksum still says something.
constexpr uint32_t masked(uint32_t crc) { return ((crc >> 15U) | (crc << 17U)) + 0xA282EAD8U; }

}  // namespace lockstep::observe
