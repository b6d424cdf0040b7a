// Products too small for tiles: a few rows times a B narrower than a vector, and outer products equally narrow. The
// matrix is read or written as one long array. After `flat_period` vectors its rows begin again at lane 0, so the same
// permutations of A serve every period.
#include <array>
#include <utility>

#include "backend/cpu/kernels/gemm_parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/gemm_flat.cpp"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {
namespace {

using V = hn::Vec<Full>;
using Indices = decltype(hn::SetTableIndices(Full(), static_cast<const int32_t*>(nullptr)));

/// For each lane of a period of rows of n: its row and its column.
template <int Period>
struct Pattern {
  explicit Pattern(int64_t n) {
    int32_t r = 0;
    int32_t c = 0;
    for (int i = 0; i < Period * kLanes; ++i) {
      row[i] = r;
      column[i] = c;
      if (++c == n) {
        c = 0;
        ++r;
      }
    }
    rows = r;
  }

  Indices rows_of(int j) const { return hn::SetTableIndices(Full(), row + j * kLanes); }

  HWY_ALIGN int32_t row[Period * kLanes];
  HWY_ALIGN int32_t column[Period * kLanes];
  int64_t rows;
};

/// One row of C: sums[n] = a[k] B[k, n].
template <int Period>
HWY_INLINE void flat_row(const Pattern<Period>& pattern, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
                         int64_t n, int64_t k, float* sums) {
  const Full d;
  const int64_t rows = pattern.rows;
  Indices index[Period];
  V acc[Period];
  HWY_UNROLL(10)
  for (int j = 0; j < Period; ++j) {
    index[j] = pattern.rows_of(j);
    acc[j] = hn::Zero(d);
  }
  const auto add_period = [&](V values, const float* HWY_RESTRICT from) HWY_ATTR {
    HWY_UNROLL(10)
    for (int j = 0; j < Period; ++j) {
      acc[j] = hn::MulAdd(hn::TableLookupLanes(values, index[j]), hn::LoadU(d, from + j * kLanes), acc[j]);
    }
  };
  int64_t i = 0;
  for (; i + kLanes <= k; i += rows) add_period(hn::LoadU(d, a + i), b + i * n);
  for (; i + rows <= k; i += rows) add_period(load_some(d, a + i, k - i), b + i * n);
  HWY_ALIGN float lanes[Period * kLanes];
  HWY_UNROLL(10)
  for (int j = 0; j < Period; ++j) hn::Store(acc[j], d, lanes + j * kLanes);
  for (int64_t c = 0; c < n; ++c) sums[c] = lanes[c];
  for (int64_t r = 1; r < rows; ++r) {
    for (int64_t c = 0; c < n; ++c) sums[c] += lanes[r * n + c];
  }
  for (; i < k; ++i) {
    for (int64_t c = 0; c < n; ++c) sums[c] += a[i] * b[i * n + c];
  }
}

template <int Period>
void flat_rows_of(const GemmJob& job) {
  const Gemm& s = job.shape;
  const Pattern<Period> pattern(s.n);
  float sums[kMaxFlatColumns];
  for (int64_t row = 0; row < s.m; ++row) {
    flat_row(pattern, job.a + row * s.lda, job.b, s.n, s.k, sums);
    float* c = job.c + row * s.ldc;
    for (int64_t i = 0; i < s.n; ++i) {
      const float sum = sums[i] + (job.bias == nullptr ? 0.0F : job.bias[i]);
      c[i] = s.activation == Activation::relu && sum < 0.0F ? 0.0F : sum;
    }
  }
  gemm_activate(s, job.c, s.m, s.n);
}

/// C[m, n] = a[m] b[n] + bias[n], whole periods only; returns the rows done.
template <int Period>
int64_t flat_outer_rows(const float* HWY_RESTRICT a, const float* b, const float* bias, float* HWY_RESTRICT c,
                        int64_t m, int64_t n, bool relu) {
  const Full d;
  const Pattern<Period> pattern(n);
  const int64_t rows = pattern.rows;
  Indices index[Period];
  V times[Period];
  V plus[Period];
  HWY_ALIGN float lanes[kLanes];
  HWY_UNROLL(10)
  for (int j = 0; j < Period; ++j) {
    index[j] = pattern.rows_of(j);
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = b[pattern.column[j * kLanes + lane]];
    times[j] = hn::Load(d, lanes);
    for (int lane = 0; lane < kLanes && bias != nullptr; ++lane) lanes[lane] = bias[pattern.column[j * kLanes + lane]];
    plus[j] = bias != nullptr ? hn::Load(d, lanes) : hn::Zero(d);
  }
  const V zero = hn::Zero(d);
  const auto write_period = [&](V values, float* HWY_RESTRICT to) HWY_ATTR {
    HWY_UNROLL(10)
    for (int j = 0; j < Period; ++j) {
      const V v = hn::MulAdd(hn::TableLookupLanes(values, index[j]), times[j], plus[j]);
      hn::StoreU(relu ? hn::Max(zero, v) : v, d, to + j * kLanes);
    }
  };
  int64_t i = 0;
  for (; i + kLanes <= m; i += rows) write_period(hn::LoadU(d, a + i), c + i * n);
  for (; i + rows <= m; i += rows) write_period(load_some(d, a + i, m - i), c + i * n);
  return i;
}

template <int Period>
void flat_outer_of(const GemmJob& job) {
  const Gemm& s = job.shape;
  float b[kMaxFlatColumns];
  for (int64_t i = 0; i < s.n; ++i) b[i] = job.b[s.transpose_b ? i * s.ldb : i];
  const bool relu = s.activation == Activation::relu;
  int64_t row = flat_outer_rows<Period>(job.a, b, job.bias, job.c, s.m, s.n, relu);
  for (; row < s.m; ++row) {
    for (int64_t i = 0; i < s.n; ++i) {
      const float value = job.a[row] * b[i] + (job.bias == nullptr ? 0.0F : job.bias[i]);
      job.c[row * s.n + i] = relu && value < 0.0F ? 0.0F : value;
    }
  }
  gemm_activate(s, job.c, s.m, s.n);
}

using FlatFn = void (*)(const GemmJob&);
using FlatTable = std::array<FlatFn, kMaxFlatPeriod>;

template <size_t... P>
constexpr FlatTable rows_table(std::index_sequence<P...>) {
  return {flat_rows_of<static_cast<int>(P) + 1>...};
}

template <size_t... P>
constexpr FlatTable outer_table(std::index_sequence<P...>) {
  return {flat_outer_of<static_cast<int>(P) + 1>...};
}

constexpr FlatTable kRows = rows_table(std::make_index_sequence<kMaxFlatPeriod>());
constexpr FlatTable kOuter = outer_table(std::make_index_sequence<kMaxFlatPeriod>());

void flat_rows(const GemmJob& job) { kRows[flat_period(job.shape.n, kLanes) - 1](job); }

void flat_outer(const GemmJob& job) { kOuter[flat_period(job.shape.n, kLanes) - 1](job); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::backend::cpu {
namespace {

HWY_EXPORT(flat_rows);
HWY_EXPORT(flat_outer);

}  // namespace

void gemm_flat_rows(const GemmJob& job) { HWY_DYNAMIC_DISPATCH(flat_rows)(job); }

void gemm_flat_outer(const GemmJob& job) { HWY_DYNAMIC_DISPATCH(flat_outer)(job); }

}  // namespace lockstep::backend::cpu
#endif  // HWY_ONCE
