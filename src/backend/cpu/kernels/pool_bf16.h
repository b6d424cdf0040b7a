// Max and average pooling of bfloat16 images in blocks of 16 channels, or of any multiple of 16 (all of them: channels
// last); the rules are those of pool.h, sums are float32.
#pragma once

#include "backend/cpu/kernels/bf16.h"
#include "backend/cpu/kernels/pool.h"

namespace lockstep::backend::cpu {

constexpr int kBf16PoolLanes = 16;  ///< Pool::lanes must be a multiple

/// Returns the floats of scratch that the backward passes need.
int64_t pool_bf16_scratch(const Pool& pool, int threads);

void max_pool_bf16(const Pool& pool, const Bf16* src, Bf16* dst, int threads);
void max_pool_bf16_backward(const Pool& pool, const Bf16* src, const Bf16* diff_dst, Bf16* diff_src, bool through_relu,
                            float* scratch, int threads);
void average_pool_bf16(const Pool& pool, const Bf16* src, Bf16* dst, int threads);
void average_pool_bf16_backward(const Pool& pool, const Bf16* diff_dst, Bf16* diff_src, float* scratch, int threads);

}  // namespace lockstep::backend::cpu
