#include "backend/cpu/kernels/batch_conv.h"

#include <array>
#include <utility>

#include "backend/cpu/kernels/batch_conv_taps.h"
#include "backend/cpu/kernels/batch_layout.h"
#include "base/loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/batch_conv.cpp"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {
namespace {

// A tile: up to kChannels channels times kColumns columns of one output row, held in registers.
constexpr int kChannels = 6;
constexpr int kColumns = kRegisters == 32 ? 4 : 2;

struct Tile {
  const float* src;      // channel 0, first valid row, position 0
  const float* weights;  // weights at the tile's first channel, source channel 0, first valid row, tap 0
  const float* bias;     // bias at the tile's first channel, or null
  float* dst;
  int64_t rows;     // valid rows of taps
  int64_t columns;  // index of the first output column
};

/// The taps of each column of a border tile that lie inside the source.
template <int Columns>
struct ValidTaps {
  ValidTaps(const TapAxis& axis, int64_t column) {
    for (int x = 0; x < Columns; ++x) {
      const base::Range valid = axis.valid_taps(column + x);
      from[x] = valid.begin;
      size[x] = valid.size();
    }
  }

  [[nodiscard]] HWY_INLINE bool has(int x, int64_t tap) const {
    return static_cast<uint64_t>(tap - from[x]) < static_cast<uint64_t>(size[x]);
  }

  /// Columns move one way over the source, so if the outer ones have the tap, all have.
  [[nodiscard]] HWY_INLINE bool all(int64_t tap) const { return has(0, tap) && has(Columns - 1, tap); }

  int64_t from[Columns];
  int64_t size[Columns];
};

/// Adds one tap to the columns [First, Last) of a tile.
template <int First, int Last, class D, class V, int Channels, int Columns>
HWY_INLINE void add_tap(D d, const float* HWY_RESTRICT src, int64_t src_column, const float* HWY_RESTRICT weights,
                        int64_t weights_dst, V (&acc)[Channels][Columns]) {
  V s[Columns];
  HWY_UNROLL(8)
  for (int x = First; x < Last; ++x) s[x] = hn::LoadU(d, src + x * src_column);
  HWY_UNROLL(8)
  for (int c = 0; c < Channels; ++c) {
    const V w = hn::Set(d, weights[c * weights_dst]);
    HWY_UNROLL(8)
    for (int x = First; x < Last; ++x) acc[c][x] = hn::MulAdd(s[x], w, acc[c][x]);
  }
}

/// Adds one tap to the columns that have it.
template <int Columns, size_t... X, class D, class V, int Channels>
HWY_INLINE void add_border_tap(std::index_sequence<X...>, const ValidTaps<Columns>& valid, int64_t tap, D d,
                               const float* src, int64_t src_column, const float* weights, int64_t weights_dst,
                               V (&acc)[Channels][Columns]) {
  if (valid.all(tap)) return add_tap<0, Columns>(d, src, src_column, weights, weights_dst, acc);
  ((valid.has(X, tap) ? add_tap<X, X + 1>(d, src, src_column, weights, weights_dst, acc) : void()), ...);
}

/// Sums all taps of Channels x Columns outputs. A border tile checks for each tap which columns have it.
template <int Lanes, int Channels, int Columns, bool Border>
void conv_tile(const TapsJob& job, const Tile& tile) {
  const hn::FixedTag<float, Lanes> d;
  using V = hn::Vec<decltype(d)>;
  const TapAxis& axis = job.columns;
  const int64_t src_column = axis.base_step * Lanes;
  const int64_t src_row = job.rows.direction * job.src_width * Lanes;
  const int64_t weights_row = job.rows.kernel_step * job.weights_row;
  const int64_t first = (axis.base + tile.columns * axis.base_step) * Lanes;
  const ValidTaps<Columns> valid(axis, tile.columns);

  V acc[Channels][Columns];
  HWY_UNROLL(8)
  for (int c = 0; c < Channels; ++c) {
    const V start = hn::Set(d, tile.bias == nullptr ? 0.0F : tile.bias[c]);
    HWY_UNROLL(8)
    for (int x = 0; x < Columns; ++x) acc[c][x] = start;
  }
  for (int64_t channel = 0; channel < job.src_channels; ++channel) {
    for (int64_t row = 0; row < tile.rows; ++row) {
      const float* src = tile.src + channel * job.src_plane * Lanes + row * src_row;
      const float* weights = tile.weights + channel * job.weights_src + row * weights_row;
      int64_t at = first;
      for (int64_t tap = 0; tap < axis.taps; ++tap) {
        if constexpr (Border) {
          add_border_tap(std::make_index_sequence<Columns>(), valid, tap, d, src + at, src_column, weights,
                         job.weights_dst, acc);
        } else {
          add_tap<0, Columns>(d, src + at, src_column, weights, job.weights_dst, acc);
        }
        at += axis.direction * Lanes;
        weights += axis.kernel_step;
      }
    }
  }
  const V zero = hn::Zero(d);
  const bool relu = job.activation == Activation::relu;
  const int64_t dst_column = axis.step * Lanes;
  HWY_UNROLL(8)
  for (int c = 0; c < Channels; ++c) {
    HWY_UNROLL(8)
    for (int x = 0; x < Columns; ++x) {
      const V v = relu ? hn::Max(zero, acc[c][x]) : acc[c][x];
      hn::StoreU(v, d, tile.dst + c * job.dst_plane * Lanes + x * dst_column);
    }
  }
}

using TileFn = void (*)(const TapsJob&, const Tile&);
using TileTable = std::array<std::array<TileFn, kColumns>, kChannels>;

template <int Lanes, bool Border, int Channels, size_t... X>
constexpr std::array<TileFn, kColumns> tile_row(std::index_sequence<X...>) {
  return {conv_tile<Lanes, Channels, static_cast<int>(X) + 1, Border>...};
}

template <int Lanes, bool Border, size_t... C>
constexpr TileTable tile_table(std::index_sequence<C...>) {
  return {tile_row<Lanes, Border, static_cast<int>(C) + 1>(std::make_index_sequence<kColumns>())...};
}

template <int Lanes, bool Border>
constexpr TileTable kTiles = tile_table<Lanes, Border>(std::make_index_sequence<kChannels>());

/// Computes the columns of `range`, in tiles of nearly equal width.
template <int Lanes, bool Border>
void conv_columns(const TapsJob& job, Tile tile, int channels, base::Range range) {
  const auto parts = static_cast<int>((range.size() + kColumns - 1) / kColumns);
  float* const dst = tile.dst;
  for (int part = 0; part < parts; ++part) {
    const base::Range columns = base::share(range.size(), part, parts);
    tile.columns = range.begin + columns.begin;
    tile.dst = dst + (job.columns.first + tile.columns * job.columns.step) * Lanes;
    kTiles<Lanes, Border>[channels - 1][columns.size() - 1](job, tile);
  }
}

/// Computes one output row of one block and of a tile's channels.
template <int Lanes>
void conv_row(const TapsJob& job, int64_t block, int64_t row, base::Range channels, base::Range interior) {
  const base::Range taps = job.rows.valid_taps(row);
  const int64_t src_row = job.rows.base + row * job.rows.base_step + taps.begin * job.rows.direction;
  const int64_t kernel_row = job.rows.kernel_first + taps.begin * job.rows.kernel_step;
  const int64_t dst_row = job.rows.first + row * job.rows.step;
  Tile tile{};
  tile.src =
      job.src + (block * job.src_channels * job.src_plane + (taps.size() > 0 ? src_row * job.src_width : 0)) * Lanes;
  tile.weights = job.weights + channels.begin * job.weights_dst + job.columns.kernel_first +
                 (taps.size() > 0 ? kernel_row * job.weights_row : 0);
  tile.bias = job.bias == nullptr ? nullptr : job.bias + channels.begin;
  tile.dst = job.dst + ((block * job.dst_channels + channels.begin) * job.dst_plane + dst_row * job.dst_width) * Lanes;
  tile.rows = taps.size();
  const auto count = static_cast<int>(channels.size());
  conv_columns<Lanes, true>(job, tile, count, {0, interior.begin});
  conv_columns<Lanes, false>(job, tile, count, interior);
  conv_columns<Lanes, true>(job, tile, count, {interior.end, job.columns.count});
  for (int c = 0; c < count && is_smooth(job.activation); ++c) {
    activate_smooth(job.activation, tile.dst + c * job.dst_plane * Lanes, job.dst_width * Lanes);
  }
}

/// Computes a thread's share of the (block, row, channel tile) triples.
template <int Lanes>
void conv_share(const TapsJob& job, int thread, int threads) {
  const auto tiles = static_cast<int>((job.dst_channels + kChannels - 1) / kChannels);
  const base::Range interior = job.columns.interior();
  const base::Range mine = base::aligned_share(job.blocks * job.rows.count * tiles, thread, threads);
  for (int64_t i = mine.begin; i < mine.end; ++i) {
    const int64_t row = i / tiles;
    conv_row<Lanes>(job, row / job.rows.count, row % job.rows.count,
                    base::share(job.dst_channels, static_cast<int>(i % tiles), tiles), interior);
  }
}

void conv_taps(const TapsJob& job, int thread, int threads) {
#if HWY_TARGET == HWY_AVX3
  if (job.lanes == 16) return conv_share<16>(job, thread, threads);
#endif
  conv_share<std::min(kLanes, 8)>(job, thread, threads);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::backend::cpu {
namespace {

HWY_EXPORT(conv_taps);

/// Multiplications for which one more thread pays off.
constexpr int64_t kGrain = 100'000;

void run(const TapsJob& job, int threads) {
  const int64_t work = job.blocks * job.lanes * job.src_channels * job.dst_channels * job.rows.count * job.rows.taps *
                       job.columns.count * job.columns.taps;
  base::parallel(base::split_for(work, kGrain, threads), [&job](int thread, int count) {
    HWY_DYNAMIC_DISPATCH(conv_taps)(job, thread, count);
  });
}

}  // namespace

void batch_conv_forward(const BatchConv& conv, const float* src, const float* weights, const float* bias,
                        Activation activation, float* dst, float* /*scratch*/, int threads) {
  const Window2d& window = conv.window;
  TapsJob job;
  job.lanes = conv.lanes;
  job.rows =
      forward_axis(conv.in_height, conv.out_height(), window.kernel_height, window.stride_height, window.pad_top);
  job.columns =
      forward_axis(conv.in_width, conv.out_width(), window.kernel_width, window.stride_width, window.pad_left);
  job.blocks = batch_blocks(conv.batch, conv.lanes);
  job.src_channels = conv.in_channels;
  job.src_width = conv.in_width;
  job.src_plane = conv.in_height * conv.in_width;
  job.dst_channels = conv.out_channels;
  job.dst_width = conv.out_width();
  job.dst_plane = conv.out_height() * conv.out_width();
  job.weights_row = window.kernel_width;
  job.weights_src = window.kernel_height * window.kernel_width;
  job.weights_dst = conv.in_channels * job.weights_src;
  job.src = src;
  job.weights = weights;
  job.bias = bias;
  job.dst = dst;
  job.activation = activation;
  run(job, threads);
}

void batch_conv_backward_data(const BatchConv& conv, const float* diff_dst, const float* weights, float* diff_src,
                              float* /*scratch*/, int threads) {
  const Window2d& window = conv.window;
  TapsJob job;
  job.lanes = conv.lanes;
  job.blocks = batch_blocks(conv.batch, conv.lanes);
  job.src_channels = conv.out_channels;
  job.src_width = conv.out_width();
  job.src_plane = conv.out_height() * conv.out_width();
  job.dst_channels = conv.in_channels;
  job.dst_width = conv.in_width;
  job.dst_plane = conv.in_height * conv.in_width;
  job.weights_row = window.kernel_width;
  job.weights_dst = window.kernel_height * window.kernel_width;
  job.weights_src = conv.in_channels * job.weights_dst;
  job.src = diff_dst;
  job.weights = weights;
  job.dst = diff_src;
  for (int64_t y = 0; y < window.stride_height; ++y) {
    job.rows =
        backward_axis(conv.in_height, conv.out_height(), window.kernel_height, window.stride_height, window.pad_top, y);
    for (int64_t x = 0; x < window.stride_width; ++x) {
      job.columns =
          backward_axis(conv.in_width, conv.out_width(), window.kernel_width, window.stride_width, window.pad_left, x);
      run(job, threads);
    }
  }
}

}  // namespace lockstep::backend::cpu
#endif  // HWY_ONCE
