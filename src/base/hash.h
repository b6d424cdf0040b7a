// FNV-1a: a small hash for noticing changes. It does not protect against deliberate collisions. Constant expressions;
// any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep::base {

constexpr uint64_t kHashStart = 14695981039346656037U;
/// Initial value of the digests stored on disk or compared between processes. It differs from FNV's own.
constexpr uint64_t kDigestStart = 1469598103934665603U;

/// Hashes a whole number in one step.
constexpr uint64_t hashed(uint64_t hash, uint64_t value) { return (hash ^ value) * 1099511628211U; }

/// Hashes a text byte by byte.
constexpr uint64_t hashed(uint64_t hash, std::string_view text) {
  for (const char c : text) hash = hashed(hash, static_cast<uint64_t>(static_cast<unsigned char>(c)));
  return hash;
}

/// The 32-bit variant.
constexpr uint32_t hashed32(std::string_view text) {
  uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

}  // namespace lockstep::base
