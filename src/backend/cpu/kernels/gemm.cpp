#include "backend/cpu/kernels/gemm.h"

#include <numeric>

#include "backend/cpu/isa.h"
#include "backend/cpu/kernels/gemm_parts.h"
#include "base/parallel.h"

namespace lockstep::backend::cpu {
namespace {

/// Multiplications for which one more thread pays off.
constexpr int64_t kGrain = 100'000;

int64_t vector_lanes() {
  switch (active_isa()) {
    case Isa::sse4:
      return 4;
    case Isa::avx2:
      return 8;
    case Isa::avx512:
      break;
  }
  return 16;
}

Gemm with_strides(Gemm shape) {
  if (shape.lda == 0) shape.lda = shape.transpose_a ? shape.m : shape.k;
  if (shape.ldb == 0) shape.ldb = shape.transpose_b ? shape.k : shape.n;
  if (shape.ldc == 0) shape.ldc = shape.n;
  return shape;
}

/// Returns true if vectors along n would leave a fifth of their lanes idle or more.
bool is_skinny(int64_t n, int64_t lanes) {
  const int64_t padded = (n + lanes - 1) / lanes * lanes;
  return n <= kMaxFlatColumns && 5 * n < 4 * padded;
}

/// Returns true if B's rows lie half a page or more apart. A panel read from all of them once for every few rows of A
/// falls out of the caches; packed, it lies in one piece. The sums are the same. Winograd's products, which come
/// without scratch, have panels of at most 64 columns.
bool reads_far_rows(const Gemm& s) {
  constexpr int64_t kFarFloats = 512;
  constexpr int64_t kLargeFloats = 1 << 18;
  constexpr int64_t kPayingRows = 24;  // rows of A from which packing pays, which reads B once more
  return !s.transpose_b && s.m >= kPayingRows && s.n >= kFarFloats && s.k * s.ldb >= kLargeFloats;
}

GemmPlan choose(const Gemm& s) {
  const int64_t lanes = vector_lanes();
  const bool skinny = is_skinny(s.n, lanes);
  // Without masked loads the last columns need padding, which packing gives.
  const bool needs_mask = lanes == 4 && s.n % lanes != 0;
  const bool flat = (skinny || needs_mask) && s.n <= kMaxFlatColumns && flat_period(s.n, lanes) <= kMaxFlatPeriod;
  if (s.m == 0 || s.n == 0) return GemmPlan::nothing;
  if (flat && s.k == 1 && s.ldc == s.n && (s.transpose_a || s.lda == 1)) return GemmPlan::flat_outer;
  if (!s.transpose_a && s.k >= 2 * lanes) {
    if (flat && s.m <= 8 && !s.transpose_b && s.ldb == s.n) return GemmPlan::flat_rows;
    if (s.transpose_b && (skinny || s.m <= 8)) return GemmPlan::dots;
    if (skinny && !s.transpose_b) return GemmPlan::packed_dots;
  }
  if (skinny && s.transpose_a && !s.transpose_b && s.m >= 2 * lanes) return GemmPlan::columns;
  return s.transpose_b || needs_mask || reads_far_rows(s) ? GemmPlan::packed_panels : GemmPlan::panels;
}

GemmJob make_job(const Gemm& shape) {
  GemmJob job;
  job.shape = with_strides(shape);
  job.plan = choose(job.shape);
  return job;
}

base::Split split_of(const GemmJob& job, int threads) {
  if (job.plan == GemmPlan::flat_rows || job.plan == GemmPlan::flat_outer) return {1, threads};
  return base::split_for(job.shape.m * job.shape.n * job.shape.k, kGrain, threads);
}

GemmShare share_of(const GemmJob& job, int thread, int threads) {
  switch (job.plan) {
    case GemmPlan::panels:
    case GemmPlan::packed_panels:
      return gemm_panels_share(job, thread, threads);
    case GemmPlan::dots:
    case GemmPlan::packed_dots:
      return gemm_dots_share(job, thread, threads);
    case GemmPlan::columns:
      return gemm_columns_share(job, thread, threads);
    case GemmPlan::nothing:
    case GemmPlan::flat_rows:
    case GemmPlan::flat_outer:
      break;
  }
  return {{0, job.shape.m}, {0, job.shape.n}};
}

}  // namespace

int64_t flat_period(int64_t n, int64_t lanes) { return n / std::gcd(n, lanes); }

int64_t gemm_scratch(const Gemm& shape, int threads) {
  const GemmJob job = make_job(shape);
  const int count = split_of(job, threads).parts;
  switch (job.plan) {
    case GemmPlan::packed_panels:
      return gemm_panels_scratch(job, count);
    case GemmPlan::packed_dots:
      return gemm_dots_scratch(job, count);
    default:
      return 0;
  }
}

base::Shares gemm_shares(const Gemm& shape, int threads) {
  const GemmJob job = make_job(shape);
  const int parts = split_of(job, threads).parts;
  base::Shares shares;
  for (int thread = 0; thread < parts; ++thread) {
    const GemmShare share = share_of(job, thread, parts);
    shares.push_back(
        base::rectangle(share.rows.begin, share.rows.size(), share.columns.begin, share.columns.size(), job.shape.ldc));
  }
  return shares;
}

void gemm(const Gemm& shape, const float* a, const float* b, const float* bias, float* c, float* scratch, int threads) {
  GemmJob job = make_job(shape);
  job.a = a;
  job.b = b;
  job.bias = bias;
  job.c = c;
  job.scratch = scratch;
  base::parallel(split_of(job, threads), [&job](int thread, int count) {
    switch (job.plan) {
      case GemmPlan::nothing:
        return;
      case GemmPlan::panels:
      case GemmPlan::packed_panels:
        return gemm_panels(job, thread, count);
      case GemmPlan::dots:
      case GemmPlan::packed_dots:
        return gemm_dots(job, thread, count);
      case GemmPlan::columns:
        return gemm_columns(job, thread, count);
      case GemmPlan::flat_rows:
        return gemm_flat_rows(job);
      case GemmPlan::flat_outer:
        return gemm_flat_outer(job);
    }
  });
}

}  // namespace lockstep::backend::cpu
