#include "observe/tensorboard/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

namespace lockstep::observe {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kPolynomial = 0x82F63B78U;  ///< bits reversed
constexpr size_t kSlices = 8;

using Tables = std::array<std::array<uint32_t, 256>, kSlices>;

/// Table s holds the effect of a byte on the checksum when s more bytes follow it, so that eight are handled at once.
constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kPolynomial : 0U);
    tables[0][byte] = crc;
  }
  for (size_t s = 1; s < kSlices; ++s) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[s - 1][byte];
      tables[s][byte] = (before >> 8U) ^ tables[0][before & 0xFFU];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint32_t crc32c(std::span<const uint8_t> bytes) {
  uint32_t crc = ~0U;
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= kSlices; left -= kSlices, at += kSlices) {
    uint64_t word = 0;
    std::memcpy(&word, at, sizeof(word));
    word ^= crc;
    crc = 0;
    for (size_t i = 0; i < kSlices; ++i) crc ^= kTables[kSlices - 1 - i][(word >> (8 * i)) & 0xFFU];
  }
  for (; left > 0; --left, ++at) crc = (crc >> 8U) ^ kTables[0][(crc ^ *at) & 0xFFU];
  return ~crc;
}

}  // namespace lockstep::observe
