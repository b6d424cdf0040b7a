// FNV-1a: a small hash for telling whether something changed, of no use against those who want it to be the same.
// Constant expressions; any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::base {

constexpr uint64_t kHashStart = 14695981039346656037U;

/// A whole number at once.
constexpr uint64_t hashed(uint64_t hash, uint64_t value) { return (hash ^ value) * 1099511628211U; }

/// Byte by byte.
constexpr uint64_t hashed(uint64_t hash, std::string_view text) {
  for (const char c : text) hash = hashed(hash, static_cast<uint64_t>(static_cast<unsigned char>(c)));
  return hash;
}

}  // namespace lockstep::base
