// Counter-based randomness (Philox 4x32-10): a value depends only on its key and its counter, never on the thread or
// process. Ops key it by (seed, op) and count by (step, row of the global batch, position).
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace lockstep::base {

/// Polynomials for small arguments: log(1 + x) from the third power on, sine, cosine.
inline constexpr std::array<float, 9> kLogTerms{6.915165484e-02F,  -1.178970486e-01F, 1.187301278e-01F,
                                                -1.238436848e-01F, 1.421865523e-01F,  -1.666924953e-01F,
                                                2.000222653e-01F,  -2.499998659e-01F, 3.333331048e-01F};
inline constexpr std::array<float, 3> kSinTerms{-1.951729791e-04F, 8.332177997e-03F, -1.666665524e-01F};
inline constexpr std::array<float, 3> kCosTerms{2.443845005e-05F, -1.388736768e-03F, 4.166664556e-02F};
inline constexpr float kLog2High = 0.693145751953125F;  // 15 bits, so that its product with an exponent is exact
inline constexpr float kLog2Low = 1.4286068e-06F;
inline constexpr float kTurn = 6.283185307179586F;

class Philox {
 public:
  using Block = std::array<uint32_t, 4>;

  /// `stream` separates the users of one seed (an op, the shuffling of an epoch, a parameter).
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

  [[nodiscard]] uint64_t key() const { return key_; }

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

/// Returns log(x) of a normal positive float, to about one unit in the last place. Uses only additions, products and
/// bit operations, so that vectors and other devices compute the same value.
inline float portable_log(float x) {
  constexpr uint32_t kHalfRoot = 0x3f3504f3;  // sqrt(1/2)
  const auto bits = std::bit_cast<uint32_t>(x);
  const int32_t exponent = static_cast<int32_t>(bits - kHalfRoot) >> 23;
  const float f = std::bit_cast<float>(bits - (static_cast<uint32_t>(exponent) << 23)) - 1.0F;
  float sum = kLogTerms[0];
  for (size_t i = 1; i < kLogTerms.size(); ++i) sum = sum * f + kLogTerms[i];
  const float square = f * f;
  const auto e = static_cast<float>(exponent);
  const float small = sum * f * square + e * kLog2Low - 0.5F * square;
  return (f + small) + e * kLog2High;
}

/// Returns cos and sin of `turns` full circles, 0 <= turns < 1, to about one unit in the last place. Portable like the
/// logarithm.
inline std::array<float, 2> portable_circle(float turns) {
  const float quarters = std::floor(4.0F * turns + 0.5F);
  const float angle = (turns - 0.25F * quarters) * kTurn;
  const float z = angle * angle;
  const float s = ((kSinTerms[0] * z + kSinTerms[1]) * z + kSinTerms[2]) * z * angle + angle;
  const float c = ((kCosTerms[0] * z + kCosTerms[1]) * z + kCosTerms[2]) * (z * z) - 0.5F * z + 1.0F;
  switch (static_cast<int>(quarters) & 3) {
    case 0:
      return {c, s};
    case 1:
      return {-s, c};
    case 2:
      return {-c, -s};
    default:
      return {s, -c};
  }
}

/// Returns two independent N(0, 1) values from two words (Box-Muller).
inline std::array<float, 2> normal2(uint32_t a, uint32_t b) {
  const float radius = std::sqrt(-2.0F * portable_log((static_cast<float>(a >> 8) + 1.0F) * 0x1p-24F));
  const auto [c, s] = portable_circle(uniform01(b));
  return {radius * c, radius * s};
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

  /// Returns a uniform number in [0, bound) without bias; bound must be positive.
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
