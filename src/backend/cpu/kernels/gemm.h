// Matrix product in float32: C[m, n] = activation(op(A)[m, k] op(B)[k, n] + bias[n]), row-major.
//
// Tuned for the small and skinny products of fully connected layers (up to about 1600 x 1024 x 100); correct for
// any size, zero included. Each element of C is summed in an order that depends only on the shape and the
// instruction set, not on the number of threads. C must not overlap A, B, bias or scratch.
#pragma once

#include <cstdint>

#include "backend/cpu/kernels/activation.h"
#include "base/shares.h"

namespace lockstep::backend::cpu {

struct Gemm {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;  ///< A is stored [k, m]
  bool transpose_b = false;  ///< B is stored [n, k]
  int64_t lda = 0;           ///< floats between rows as stored; 0: dense
  int64_t ldb = 0;
  int64_t ldc = 0;
  Activation activation = Activation::none;
  bool accumulate = false;  ///< adds to C; without bias, and only if n fills whole vectors
};

/// Returns the floats of scratch that `gemm` needs for this shape (may be 0).
int64_t gemm_scratch(const Gemm& shape, int threads);

/// Returns what each thread computes of C.
base::Shares gemm_shares(const Gemm& shape, int threads);

/// `bias` may be null; `scratch` is 64-byte aligned and may be null if gemm_scratch says 0.
void gemm(const Gemm& shape, const float* a, const float* b, const float* bias, float* c, float* scratch, int threads);

}  // namespace lockstep::backend::cpu
