// Sums in an order that depends only on the sizes and the instruction set, never on the number of threads.
#pragma once

#include <cstdint>

namespace lockstep::backend::cpu {

/// dst[i] = sum over r of src[r][i]: the gradient of a bias.
void column_sums(const float* src, float* dst, int64_t rows, int64_t count, int threads);

/// dst[r] = sum over i of src[r][i].
void row_sums(const float* src, float* dst, int64_t rows, int64_t count, int threads);

/// Returns the sum, accumulated in double.
double sum(const float* src, int64_t count, int threads);

}  // namespace lockstep::backend::cpu
