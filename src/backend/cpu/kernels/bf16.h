// bfloat16 tensors: the upper half of float32 with 8 bits of precision, kept as their 16 bits. Arithmetic happens in
// float32 registers; results are rounded to nearest, ties to even, and NaN stays NaN.
#pragma once

#include <bit>
#include <cstdint>

namespace lockstep::backend::cpu {

/// The bits of one bfloat16.
using Bf16 = uint16_t;

inline float widen(Bf16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

inline Bf16 narrow(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (value != value) return static_cast<Bf16>(bits >> 16 | 0x40U);
  return static_cast<Bf16>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

void to_bf16(const float* src, Bf16* dst, int64_t count, int threads);
void from_bf16(const Bf16* src, float* dst, int64_t count, int threads);

/// dst = max(src, 0), and dst = diff if the ReLU's result y is positive, else 0. dst may be a source.
void relu_bf16(const Bf16* src, Bf16* dst, int64_t count, int threads);
void relu_grad_bf16(const Bf16* y, const Bf16* diff, Bf16* dst, int64_t count, int threads);

}  // namespace lockstep::backend::cpu
