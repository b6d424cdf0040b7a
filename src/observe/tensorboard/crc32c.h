// CRC-32C (Castagnoli), the checksum of TensorBoard's records. A free function, any thread.
#pragma once

#include <cstdint>
#include <span>

namespace lockstep::observe {

uint32_t crc32c(std::span<const uint8_t> bytes);

/// Returns the form used in records, so that a checksum over bytes that contain their own checksum stays meaningful.
constexpr uint32_t masked(uint32_t crc) { return ((crc >> 15U) | (crc << 17U)) + 0xA282EAD8U; }

}  // namespace lockstep::observe
