// Counter-based randomness (Philox 4x32-10): a value depends only on its key and its counter, never on who
// asks or in which order. Ops key it by (seed, op) and count by (step, row of the global batch, position).
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace lockstep::base {

class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  /// `stream` tells users of one seed apart (an op, the shuffling of an epoch, a parameter).
  Philox(uint64_t seed, uint64_t stream) : key_{mix(seed, stream)} {}

  [[nodiscard]] Block operator()(uint64_t high, uint64_t low) const {
    Block c{static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32), static_cast<uint32_t>(high),
            static_cast<uint32_t>(high >> 32)};
    auto k0 = static_cast<uint32_t>(key_);
    auto k1 = static_cast<uint32_t>(key_ >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c[0];
      const uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
      c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
           static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    return c;
  }

 private:
  static uint64_t mix(uint64_t a, uint64_t b) {
    uint64_t x = a + 0x9E3779B97F4A7C15 * (b + 1);
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }

  uint64_t key_;
};

/// Uniform in [0, 1) with 24 bits.
inline float uniform01(uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24F; }

/// Two independent N(0, 1) values from two words (Box-Muller).
inline std::array<float, 2> normal2(uint32_t a, uint32_t b) {
  const float radius = std::sqrt(-2.0F * std::log((static_cast<float>(a >> 8) + 1.0F) * 0x1p-24F));
  const float angle = 2.0F * std::numbers::pi_v<float> * uniform01(b);
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

/// A sequence of random numbers for host-side work (shuffling, initial values, generated data).
class Sequence {
 public:
  Sequence(uint64_t seed, uint64_t stream, uint64_t substream = 0) : philox_(seed, stream), substream_(substream) {}

  uint32_t next() {
    if (used_ == 4) {
      block_ = philox_(substream_, counter_++);
      used_ = 0;
    }
    return block_[used_++];
  }

  /// Uniform in [0, bound) without bias; bound must be positive.
  uint32_t below(uint32_t bound) {
    uint64_t product = uint64_t{next()} * bound;
    if (static_cast<uint32_t>(product) < bound) {
      const uint32_t threshold = (0U - bound) % bound;
      while (static_cast<uint32_t>(product) < threshold) product = uint64_t{next()} * bound;
    }
    return static_cast<uint32_t>(product >> 32);
  }

  float uniform() { return uniform01(next()); }

  float normal() {
    const uint32_t a = next();
    return normal2(a, next())[0];
  }

 private:
  Philox philox_;
  uint64_t substream_;
  uint64_t counter_ = 0;
  Philox::Block block_{};
  int used_ = 4;
};

}  // namespace lockstep::base
