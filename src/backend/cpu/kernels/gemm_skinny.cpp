// Products whose C is narrower than a vector. `dots` puts vectors along k, so B must be stored [n, k]. `columns` puts
// them along m, so A must be stored [k, m]. Both keep all lanes busy; vectors along n would idle.
#include <array>
#include <utility>

#include "backend/cpu/kernels/gemm_parts.h"
#include "base/parallel.h"
#include "hwy/cache_control.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/gemm_skinny.cpp"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {
namespace {

using V = hn::Vec<Full>;

constexpr int kDotRows = kRegisters == 32 ? 6 : 3;
constexpr int kDotColumns = 4;

struct DotTile {
  const float* a;
  int64_t a_row;
  const float* b;  // [columns][k]
  int64_t b_row;
  const float* bias;
  float* c;
  int64_t c_row;
  int64_t k;
  bool relu;
};

template <int Rows, int Columns, class Load>
HWY_INLINE void dot_step(Load load, const DotTile& tile, int64_t k, V (&acc)[Rows][Columns]) {
  V a[Rows];
  HWY_UNROLL(8)
  for (int r = 0; r < Rows; ++r) a[r] = in_register(load(tile.a + r * tile.a_row + k));
  HWY_UNROLL(8)
  for (int c = 0; c < Columns; ++c) {
    const V b = in_register(load(tile.b + c * tile.b_row + k));
    HWY_UNROLL(8)
    for (int r = 0; r < Rows; ++r) acc[r][c] = hn::MulAdd(a[r], b, acc[r][c]);
  }
}

/// Adds up the lanes of one row of the tile and stores it.
template <int Columns>
HWY_INLINE void store_dots(const DotTile& tile, const V* acc, float* c) {
  const hn::FixedTag<float, kDotColumns> d4;
  const V zero = hn::Zero(Full());
  auto sums =
      sum_lanes4(Full(), acc[0], Columns > 1 ? acc[1] : zero, Columns > 2 ? acc[2] : zero, Columns > 3 ? acc[3] : zero);
  if (tile.bias != nullptr) sums = hn::Add(sums, load_some(d4, tile.bias, Columns));
  if (tile.relu) sums = hn::Max(hn::Zero(d4), sums);
  if constexpr (Columns == kDotColumns) {
    hn::StoreU(sums, d4, c);
  } else {
    store_some(d4, sums, c, Columns);
  }
}

template <int Rows, int Columns>
void dot_tile(const DotTile& tile) {
  const Full d;
  V acc[Rows][Columns];
  HWY_UNROLL(8)
  for (int r = 0; r < Rows; ++r) {
    HWY_UNROLL(8)
    for (int c = 0; c < Columns; ++c) acc[r][c] = hn::Zero(d);
  }
  int64_t k = 0;
  for (; k + kLanes <= tile.k; k += kLanes) {
    dot_step<Rows, Columns>([d](const float* p) HWY_ATTR { return hn::LoadU(d, p); }, tile, k, acc);
  }
  if (const int64_t rest = tile.k - k; rest > 0) {
    dot_step<Rows, Columns>([d, rest](const float* p) HWY_ATTR { return load_some(d, p, rest); }, tile, k, acc);
  }
  HWY_UNROLL(8)
  for (int r = 0; r < Rows; ++r) store_dots<Columns>(tile, acc[r], tile.c + r * tile.c_row);
}

using DotFn = void (*)(const DotTile&);

template <int Rows, size_t... C>
constexpr std::array<DotFn, kDotColumns> dot_row(std::index_sequence<C...>) {
  return {dot_tile<Rows, static_cast<int>(C) + 1>...};
}

template <size_t... R>
constexpr std::array<std::array<DotFn, kDotColumns>, kDotRows> dot_table(std::index_sequence<R...>) {
  return {dot_row<static_cast<int>(R) + 1>(std::make_index_sequence<kDotColumns>())...};
}

constexpr auto kDots = dot_table(std::make_index_sequence<kDotRows>());

/// dst[n][stride] = B transposed.
void transpose_b(const GemmJob& job, float* dst, int64_t stride) {
  const Full d;
  const Gemm& s = job.shape;
  V rows[kLanes];
  for (int64_t n = 0; n < s.n; n += kLanes) {
    const int64_t columns = std::min<int64_t>(kLanes, s.n - n);
    for (int64_t k = 0; k < s.k; k += kLanes) {
      for (int64_t i = 0; i < kLanes; ++i) {
        rows[i] = k + i < s.k ? load_some(d, job.b + (k + i) * s.ldb + n, columns) : hn::Zero(d);
      }
      transpose(d, rows);
      for (int64_t i = 0; i < columns; ++i) hn::StoreU(rows[i], d, dst + (n + i) * stride + k);
    }
  }
}

int64_t padded_k(const GemmJob& job) { return (job.shape.k + kLanes - 1) / kLanes * kLanes; }

GemmShare dots_share(const GemmJob& job, int thread, int threads) {
  const Gemm& s = job.shape;
  if (s.m >= kDotRows * threads) return {base::share(s.m, thread, threads), {0, s.n}};
  return {{0, s.m}, base::share(s.n, thread, threads)};
}

void dots(const GemmJob& job, int thread, int threads) {
  const Gemm& s = job.shape;
  const auto [rows, columns] = dots_share(job, thread, threads);
  DotTile tile{};
  const float* b = job.b;
  tile.b_row = s.ldb;
  if (job.plan == GemmPlan::packed_dots) {
    tile.b_row = padded_k(job);
    float* packed = job.scratch + thread * s.n * tile.b_row;
    transpose_b(job, packed, tile.b_row);
    b = packed;
  }
  tile.a_row = s.lda;
  tile.c_row = s.ldc;
  tile.k = s.k;
  tile.relu = s.activation == Activation::relu;
  const auto row_parts = static_cast<int>((rows.size() + kDotRows - 1) / kDotRows);
  const auto column_parts = static_cast<int>((columns.size() + kDotColumns - 1) / kDotColumns);
  for (int i = 0; i < row_parts; ++i) {
    const base::Range r = base::share(rows.size(), i, row_parts);
    tile.a = job.a + (rows.begin + r.begin) * s.lda;
    for (int j = 0; j < column_parts; ++j) {
      const base::Range c = base::share(columns.size(), j, column_parts);
      const int64_t column = columns.begin + c.begin;
      tile.b = b + column * tile.b_row;
      tile.bias = job.bias == nullptr ? nullptr : job.bias + column;
      tile.c = job.c + (rows.begin + r.begin) * s.ldc + column;
      kDots[r.size() - 1][c.size() - 1](tile);
    }
  }
  gemm_activate(s, job.c + rows.begin * s.ldc + columns.begin, rows.size(), columns.size());
}

int64_t dots_scratch(const GemmJob& job, int threads) { return job.shape.n * padded_k(job) * threads; }

constexpr int kStrip = 2;  // vectors along m
constexpr int kColumns = kRegisters == 32 ? 10 : 5;

/// Rows of B by which A is prefetched ahead: its rows are far apart.
constexpr int64_t kPrefetch = 8;

struct ColumnTile {
  const float* a;  // [k][rows]
  int64_t a_k;
  const float* b;  // [k][columns]
  int64_t b_k;
  const float* bias;
  float* c;
  int64_t c_row;
  int64_t k;
  int64_t rows;  // rows of this tile, at most kStrip * kLanes
  bool relu;
};

/// Writes `rows` rows of Columns floats from Columns vectors. Rows without a gap (c_row is Columns) are stored whole;
/// the next row overwrites the surplus.
template <int Columns>
HWY_INLINE void store_transposed(const V* columns, float* c, int64_t c_row, int64_t rows) {
  const Full d;
  constexpr int kChunks = (Columns + kLanes - 1) / kLanes;
  V block[kChunks][kLanes];
  HWY_UNROLL(4)
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    HWY_UNROLL(16)
    for (int i = 0; i < kLanes; ++i) {
      const int column = chunk * kLanes + i;
      block[chunk][i] = column < Columns ? columns[column] : hn::Zero(d);
    }
    transpose(d, block[chunk]);
  }
  constexpr int kLast = Columns - (kChunks - 1) * kLanes;
  for (int64_t r = 0; r < rows; ++r) {
    float* row = c + r * c_row;
    for (int chunk = 0; chunk + 1 < kChunks; ++chunk) hn::StoreU(block[chunk][r], d, row + chunk * kLanes);
    const bool room = c_row == Columns && (rows - 1 - r) * Columns >= kLanes;
    if (room) {
      hn::StoreU(block[kChunks - 1][r], d, row + (kChunks - 1) * kLanes);
    } else {
      store_some(d, block[kChunks - 1][r], row + (kChunks - 1) * kLanes, kLast);
    }
  }
}

template <int Columns>
void column_tile(const ColumnTile& tile) {
  const Full d;
  V acc[kStrip][Columns];
  HWY_UNROLL(16)
  for (int c = 0; c < Columns; ++c) {
    const V start = hn::Set(d, tile.bias == nullptr ? 0.0F : tile.bias[c]);
    HWY_UNROLL(8)
    for (int v = 0; v < kStrip; ++v) acc[v][c] = start;
  }
  const int64_t first = std::min<int64_t>(kLanes, tile.rows);
  const int64_t second = tile.rows - first;
  const bool whole = second == kLanes;
  const float* HWY_RESTRICT a = tile.a;
  const float* HWY_RESTRICT b = tile.b;
  for (int64_t k = 0; k < tile.k; ++k) {
    const V low = whole ? hn::LoadU(d, a) : load_some(d, a, first);
    const V high = whole ? hn::LoadU(d, a + kLanes) : load_some(d, a + first, second);
    hwy::Prefetch(a + kPrefetch * tile.a_k);
    HWY_UNROLL(16)
    for (int c = 0; c < Columns; ++c) {
      const V w = hn::Set(d, b[c]);
      acc[0][c] = hn::MulAdd(low, w, acc[0][c]);
      acc[1][c] = hn::MulAdd(high, w, acc[1][c]);
    }
    a += tile.a_k;
    b += tile.b_k;
  }
  HWY_UNROLL(8)
  for (int v = 0; v < kStrip; ++v) {
    HWY_UNROLL(16)
    for (int c = 0; c < Columns; ++c) acc[v][c] = tile.relu ? hn::Max(hn::Zero(d), acc[v][c]) : acc[v][c];
  }
  store_transposed<Columns>(acc[0], tile.c, tile.c_row, first);
  store_transposed<Columns>(acc[1], tile.c + first * tile.c_row, tile.c_row, second);
}

using ColumnFn = void (*)(const ColumnTile&);

template <size_t... C>
constexpr std::array<ColumnFn, kColumns> column_table(std::index_sequence<C...>) {
  return {column_tile<static_cast<int>(C) + 1>...};
}

constexpr auto kColumnTiles = column_table(std::make_index_sequence<kColumns>());

constexpr int64_t kTileRows = kStrip * kLanes;

GemmShare columns_share(const GemmJob& job, int thread, int threads) {
  return {base::share(job.shape.m, thread, threads, kTileRows), {0, job.shape.n}};
}

void columns(const GemmJob& job, int thread, int threads) {
  const Gemm& s = job.shape;
  const base::Range rows = columns_share(job, thread, threads).rows;
  const auto parts = static_cast<int>((s.n + kColumns - 1) / kColumns);
  ColumnTile tile{};
  tile.a_k = s.lda;
  tile.b_k = s.ldb;
  tile.c_row = s.ldc;
  tile.k = s.k;
  tile.relu = s.activation == Activation::relu;
  for (int64_t row = rows.begin; row < rows.end; row += kTileRows) {
    tile.rows = std::min(kTileRows, rows.end - row);
    tile.a = job.a + row;
    for (int part = 0; part < parts; ++part) {
      const base::Range c = base::share(s.n, part, parts);
      tile.b = job.b + c.begin;
      tile.bias = job.bias == nullptr ? nullptr : job.bias + c.begin;
      tile.c = job.c + row * s.ldc + c.begin;
      kColumnTiles[c.size() - 1](tile);
    }
  }
  gemm_activate(s, job.c + rows.begin * s.ldc, rows.size(), s.n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::backend::cpu {
namespace {

HWY_EXPORT(dots);
HWY_EXPORT(dots_share);
HWY_EXPORT(dots_scratch);
HWY_EXPORT(columns);
HWY_EXPORT(columns_share);

}  // namespace

void gemm_dots(const GemmJob& job, int thread, int threads) { HWY_DYNAMIC_DISPATCH(dots)(job, thread, threads); }

GemmShare gemm_dots_share(const GemmJob& job, int thread, int threads) {
  return HWY_DYNAMIC_DISPATCH(dots_share)(job, thread, threads);
}

int64_t gemm_dots_scratch(const GemmJob& job, int threads) { return HWY_DYNAMIC_DISPATCH(dots_scratch)(job, threads); }

void gemm_columns(const GemmJob& job, int thread, int threads) { HWY_DYNAMIC_DISPATCH(columns)(job, thread, threads); }

GemmShare gemm_columns_share(const GemmJob& job, int thread, int threads) {
  return HWY_DYNAMIC_DISPATCH(columns_share)(job, thread, threads);
}

}  // namespace lockstep::backend::cpu
#endif  // HWY_ONCE
