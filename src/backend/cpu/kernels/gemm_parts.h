// The ways to compute a matrix product, chosen by shape so that all lanes of the vectors are busy. Each function
// computes one thread's rectangle of C.
#pragma once

#include <cstdint>

#include "backend/cpu/kernels/gemm.h"
#include "base/parallel.h"

namespace lockstep::backend::cpu {

enum class GemmPlan {
  nothing,        ///< C is empty
  panels,         ///< vectors along n, A broadcast
  packed_panels,  ///< the same with B copied into panels first
  dots,           ///< vectors along k; B stored [n, k]
  packed_dots,    ///< the same with B transposed first: n is less than a vector
  columns,        ///< vectors along m, B broadcast: n is less than a vector and A is stored [k, m]
  flat_rows,      ///< a few rows times a skinny B, whose rows are read as one long array
  flat_outer,     ///< k is 1 and n less than a vector: the rows of C are written as one long array
};

struct GemmJob {
  Gemm shape;  ///< leading dimensions filled in
  GemmPlan plan = GemmPlan::nothing;
  const float* a = nullptr;
  const float* b = nullptr;
  const float* bias = nullptr;
  float* c = nullptr;
  float* scratch = nullptr;

  [[nodiscard]] const float* a_at(int64_t row, int64_t k) const {
    return a + (shape.transpose_a ? k * shape.lda + row : row * shape.lda + k);
  }
};

/// Rows and columns of C.
struct GemmShare {
  base::Range rows;
  base::Range columns;
};

void gemm_panels(const GemmJob& job, int thread, int threads);
GemmShare gemm_panels_share(const GemmJob& job, int thread, int threads);
int64_t gemm_panels_scratch(const GemmJob& job, int threads);

void gemm_dots(const GemmJob& job, int thread, int threads);
GemmShare gemm_dots_share(const GemmJob& job, int thread, int threads);
int64_t gemm_dots_scratch(const GemmJob& job, int threads);

void gemm_columns(const GemmJob& job, int thread, int threads);
GemmShare gemm_columns_share(const GemmJob& job, int thread, int threads);

void gemm_flat_rows(const GemmJob& job);
void gemm_flat_outer(const GemmJob& job);

/// Returns the vectors in one period of rows of n floats; after that many vectors a row begins again at lane 0.
int64_t flat_period(int64_t n, int64_t lanes);
constexpr int64_t kMaxFlatPeriod = 10;
constexpr int64_t kMaxFlatColumns = 32;

/// Applies a smooth activation to rows x columns of C.
void gemm_activate(const Gemm& shape, float* c, int64_t rows, int64_t columns);

}  // namespace lockstep::backend::cpu
