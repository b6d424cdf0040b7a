// Products with vectors along n: tiles of rows x vectors of C are summed in registers, reading B in vectors and A as
// broadcast scalars. A transposed B is first turned into panels [k][vectors of a tile], zero-padded.
#include <array>
#include <cmath>
#include <utility>

#include "backend/cpu/kernels/gemm_parts.h"
#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/gemm_panels.cpp"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr int kRows = 6;
constexpr int kVectors = kRegisters == 32 ? 4 : 2;

struct Tile {
  const float* a;
  int64_t a_row;
  int64_t a_k;
  const float* b;
  int64_t b_k;
  const float* bias;
  float* c;
  int64_t c_row;
  int64_t k;
  int64_t last;  // columns of the last vector
  bool relu;
  bool accumulate;
};

/// With Tail, the last vector has only `last` columns.
template <int Rows, int Vectors, bool Tail>
void panel_tile(const Tile& tile) {
  const Full d;
  using V = hn::Vec<Full>;
#if HWY_TARGET <= HWY_AVX2
  const auto load_last = [&, mask = hn::FirstN(d, static_cast<size_t>(tile.last))](const float* p)
                             HWY_ATTR { return hn::MaskedLoad(mask, d, p); };
#else
  // A masked load for SSE4 would read the whole vector, past the end of B's last row.
  const auto load_last = [&](const float* p) HWY_ATTR { return load_some(d, p, tile.last); };
#endif
  const auto load = [&](const float* p, int v) HWY_ATTR {
    if constexpr (Tail) {
      if (v == Vectors - 1) return load_last(p + v * kLanes);
    }
    return hn::LoadU(d, p + v * kLanes);
  };
  V acc[Rows][Vectors];
  HWY_UNROLL(8)
  for (int v = 0; v < Vectors; ++v) {
    V start = hn::Zero(d);
    if (tile.bias != nullptr) {
      const bool partial = Tail && v == Vectors - 1;
      start = partial ? load_some(d, tile.bias + v * kLanes, tile.last) : hn::LoadU(d, tile.bias + v * kLanes);
    }
    HWY_UNROLL(8)
    for (int r = 0; r < Rows; ++r) {
      acc[r][v] = tile.accumulate ? hn::LoadU(d, tile.c + r * tile.c_row + v * kLanes) : start;
    }
  }
  const float* HWY_RESTRICT a = tile.a;
  const float* HWY_RESTRICT b = tile.b;
  for (int64_t k = 0; k < tile.k; ++k) {
    V bv[Vectors];
    HWY_UNROLL(8)
    for (int v = 0; v < Vectors; ++v) bv[v] = load(b, v);
    HWY_UNROLL(8)
    for (int r = 0; r < Rows; ++r) {
      const V av = hn::Set(d, a[r * tile.a_row]);
      HWY_UNROLL(8)
      for (int v = 0; v < Vectors; ++v) acc[r][v] = hn::MulAdd(av, bv[v], acc[r][v]);
    }
    a += tile.a_k;
    b += tile.b_k;
  }
  const V zero = hn::Zero(d);
  HWY_UNROLL(8)
  for (int r = 0; r < Rows; ++r) {
    HWY_UNROLL(8)
    for (int v = 0; v < Vectors; ++v) {
      const V result = tile.relu ? hn::Max(zero, acc[r][v]) : acc[r][v];
      float* c = tile.c + r * tile.c_row + v * kLanes;
      if (Tail && v == Vectors - 1) {
        store_some(d, result, c, tile.last);
      } else {
        hn::StoreU(result, d, c);
      }
    }
  }
}

using TileFn = void (*)(const Tile&);
using TileTable = std::array<std::array<TileFn, kVectors>, kRows>;

template <bool Tail, int Rows, size_t... V>
constexpr std::array<TileFn, kVectors> tile_row(std::index_sequence<V...>) {
  return {panel_tile<Rows, static_cast<int>(V) + 1, Tail>...};
}

template <bool Tail, size_t... R>
constexpr TileTable tile_table(std::index_sequence<R...>) {
  return {tile_row<Tail, static_cast<int>(R) + 1>(std::make_index_sequence<kVectors>())...};
}

template <bool Tail>
constexpr TileTable kTiles = tile_table<Tail>(std::make_index_sequence<kRows>());

/// dst[k][lanes] = up to kLanes columns of B (stored as rows of k floats), zero-padded; `stride` floats between k.
void pack_vector(const float* src, int64_t ld, int64_t columns, int64_t k, float* dst, int64_t stride) {
  const Full d;
  hn::Vec<Full> rows[kLanes];
  for (int64_t begin = 0; begin < k; begin += kLanes) {
    const int64_t count = std::min<int64_t>(kLanes, k - begin);
    const bool whole = columns == kLanes && count == kLanes;
    for (int64_t i = 0; i < kLanes; ++i) {
      const float* row = src + i * ld + begin;
      if (whole) {
        rows[i] = hn::LoadU(d, row);
      } else {
        rows[i] = i < columns ? load_some(d, row, count) : hn::Zero(d);
      }
    }
    transpose(d, rows);
    for (int64_t i = 0; i < count; ++i) hn::StoreU(rows[i], d, dst + (begin + i) * stride);
  }
}

/// Copies several vectors of a B that is not transposed, row by row.
void copy_panel(const float* src, int64_t ld, int64_t columns, int64_t k, int64_t vectors, float* dst) {
  const Full d;
  const int64_t last = columns - (vectors - 1) * kLanes;
  for (int64_t i = 0; i < k; ++i) {
    const float* row = src + i * ld;
    for (int64_t v = 0; v + 1 < vectors; ++v) hn::StoreU(hn::LoadU(d, row + v * kLanes), d, dst + v * kLanes);
    hn::StoreU(load_some(d, row + (vectors - 1) * kLanes, last), d, dst + (vectors - 1) * kLanes);
    dst += vectors * kLanes;
  }
}

/// Copies `vectors` of B into a panel [k][vectors].
void pack_panel(const GemmJob& job, base::Range vectors, float* panel) {
  const Gemm& s = job.shape;
  const int64_t first = vectors.begin * kLanes;
  const int64_t columns = std::min(vectors.end * kLanes, s.n) - first;
  if (!s.transpose_b) return copy_panel(job.b + first, s.ldb, columns, s.k, vectors.size(), panel);
  for (int64_t v = 0; v < vectors.size(); ++v) {
    pack_vector(job.b + (first + v * kLanes) * s.ldb, s.ldb, std::min<int64_t>(kLanes, columns - v * kLanes), s.k,
                panel + v * kLanes, vectors.size() * kLanes);
  }
}

/// Computes all `rows` of one panel.
void panel_rows(const GemmJob& job, base::Range rows, base::Range vectors, float* packed) {
  const Gemm& s = job.shape;
  const int64_t column = vectors.begin * kLanes;
  Tile tile{};
  tile.a_row = s.transpose_a ? 1 : s.lda;
  tile.a_k = s.transpose_a ? s.lda : 1;
  tile.b = packed == nullptr ? job.b + column : packed;
  tile.b_k = packed == nullptr ? s.ldb : vectors.size() * kLanes;
  tile.bias = job.bias == nullptr ? nullptr : job.bias + column;
  tile.c_row = s.ldc;
  tile.k = s.k;
  tile.last = std::min<int64_t>(kLanes, s.n - (vectors.end - 1) * kLanes);
  tile.relu = s.activation == Activation::relu;
  tile.accumulate = s.accumulate;
  const TileTable& table = tile.last < kLanes ? kTiles<true> : kTiles<false>;
  const auto parts = static_cast<int>((rows.size() + kRows - 1) / kRows);
  for (int part = 0; part < parts; ++part) {
    const base::Range tile_rows = base::share(rows.size(), part, parts);
    const int64_t row = rows.begin + tile_rows.begin;
    tile.a = job.a_at(row, 0);
    tile.c = job.c + row * s.ldc + column;
    table[tile_rows.size() - 1][vectors.size() - 1](tile);
  }
}

/// Floats of a cache line: threads that write to the same lines slow each other down.
constexpr int64_t kLine = 16;

/// Floats of B that no longer fit a core's own cache.
constexpr int64_t kLargeB = 1 << 18;

/// Returns true if threads split the columns: when there are few rows, or when each can pack or read its own part of a
/// large B without writing to the others' cache lines. Otherwise they split the rows.
bool splits_vectors(const GemmJob& job, int64_t vectors, int threads) {
  const Gemm& s = job.shape;
  const bool packed = job.plan == GemmPlan::packed_panels;
  if (!packed && s.k * s.n < kLargeB) return s.m < kRows * threads;
  return vectors >= threads && (s.ldc % kLine == 0 || s.m < kLine * threads);
}

/// Threads that share the rows of C, and those that share its columns.
struct Grid {
  int rows = 1;
  int columns = 1;
};

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Returns the estimated cycles of the slowest thread of a grid: its multiplications, the panels of B that it reads and
/// perhaps packs, its rows of A, and the lines of C that it shares with its neighbours. B is mostly weights that other
/// cores have just updated.
double cycles(const GemmJob& job, Grid grid) {
  constexpr double kLineRead = 12;
  constexpr double kPack = 5;
  constexpr double kLineShared = 100;
  constexpr double kLatency = 4;
  const Gemm& s = job.shape;
  const auto rows = static_cast<double>(ceil_div(s.m, grid.rows));
  const auto vectors = static_cast<double>(ceil_div(ceil_div(s.n, kLanes), grid.columns));
  const double tiles = std::ceil(rows / kRows) * std::ceil(vectors / kVectors);
  const double each = std::max(rows * vectors / tiles / 2, kLatency);
  const double lines = static_cast<double>(s.k * kLanes) / kLine;
  double total = tiles * each * static_cast<double>(s.k) + (vectors + rows / kLanes) * lines * kLineRead;
  if (job.plan == GemmPlan::packed_panels) total += vectors * static_cast<double>(s.k) * kPack;
  if (grid.columns > 1 && s.ldc % kLine != 0) total += 2 * rows * kLineShared;
  return total;
}

/// Returns the grid with the best estimate, of those with 1, 2, 3, 4, 6, 8, 12... threads along the columns. Up to two
/// threads split C one way.
Grid grid_of(const GemmJob& job, int64_t vectors, int threads) {
  Grid best = splits_vectors(job, vectors, threads) ? Grid{1, threads} : Grid{threads, 1};
  if (threads <= 2) return best;
  double least = cycles(job, best);
  for (int power = 1; power <= std::min<int64_t>(threads, vectors); power *= 2) {
    for (const int columns : {power, 3 * power / 2}) {
      const Grid grid{static_cast<int>(std::min<int64_t>(threads / columns, job.shape.m)), columns};
      const double estimate = columns <= threads ? cycles(job, grid) : least;
      if (estimate >= least) continue;
      least = estimate;
      best = grid;
    }
  }
  return best;
}

struct PanelShare {
  base::Range rows;
  base::Range vectors;
};

/// Returns a thread's rows and columns. Neighbouring threads have neighbouring rows, as in loops over rows.
PanelShare panel_share(const GemmJob& job, int thread, int threads) {
  const int64_t all = ceil_div(job.shape.n, kLanes);
  const Grid grid = grid_of(job, all, threads);
  if (thread >= grid.rows * grid.columns) return {};
  return {base::share(job.shape.m, thread / grid.columns, grid.rows),
          base::share(all, thread % grid.columns, grid.columns, kLine / kLanes)};
}

GemmShare panels_share(const GemmJob& job, int thread, int threads) {
  const auto [rows, vectors] = panel_share(job, thread, threads);
  return {rows, {std::min(vectors.begin * kLanes, job.shape.n), std::min(vectors.end * kLanes, job.shape.n)}};
}

/// Computes a thread's share of C.
void panels(const GemmJob& job, int thread, int threads) {
  const Gemm& s = job.shape;
  const auto [rows, vectors] = panel_share(job, thread, threads);
  if (rows.size() == 0 || vectors.size() == 0) return;
  const bool packed = job.plan == GemmPlan::packed_panels;
  float* scratch = packed ? job.scratch + thread * kVectors * kLanes * s.k : nullptr;
  const auto parts = static_cast<int>(ceil_div(vectors.size(), kVectors));
  for (int part = 0; part < parts; ++part) {
    base::Range panel = base::share(vectors.size(), part, parts);
    panel = {panel.begin + vectors.begin, panel.end + vectors.begin};
    if (packed) pack_panel(job, panel, scratch);
    panel_rows(job, rows, panel, scratch);
  }
  const int64_t column = vectors.begin * kLanes;
  gemm_activate(s, job.c + rows.begin * s.ldc + column, rows.size(), std::min(vectors.end * kLanes, s.n) - column);
}

int64_t panels_scratch(const GemmJob& job, int threads) { return threads * kVectors * kLanes * job.shape.k; }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::backend::cpu {
namespace {

HWY_EXPORT(panels);
HWY_EXPORT(panels_share);
HWY_EXPORT(panels_scratch);

}  // namespace

void gemm_panels(const GemmJob& job, int thread, int threads) { HWY_DYNAMIC_DISPATCH(panels)(job, thread, threads); }

GemmShare gemm_panels_share(const GemmJob& job, int thread, int threads) {
  return HWY_DYNAMIC_DISPATCH(panels_share)(job, thread, threads);
}

int64_t gemm_panels_scratch(const GemmJob& job, int threads) {
  return HWY_DYNAMIC_DISPATCH(panels_scratch)(job, threads);
}

}  // namespace lockstep::backend::cpu
#endif  // HWY_ONCE
