// The gradient of a convolution by its weights: each weight is a sum over images, rows and columns. A tile of
// channels times neighbouring taps is summed in registers, lane by lane; the lanes are added up at the end. The rows of
// all images are cut into strips, each with sums of its own, which are added in order at the end. The number of strips
// depends on the shape alone, so the bits do not depend on the threads, which share the pairs of strip and tile.
#include <array>
#include <utility>

#include "backend/cpu/kernels/batch_conv.h"
#include "backend/cpu/kernels/batch_layout.h"
#include "base/loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/batch_conv_weights.cpp"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/kernels/batch_conv_weights.h"
#include "backend/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr int kTaps = 5;
constexpr int kChannels = 8;
constexpr int kTileSize = kRegisters == 32 ? 25 : 12;

constexpr int tile_channels(int taps) { return std::min(kChannels, kTileSize / taps); }

/// A tile's place: `channels` of diff_dst, one channel of src, one kernel row, `taps` of that row.
struct Tile {
  base::Range channels;
  int64_t src_channel;
  int64_t kernel_row;
  base::Range taps;
};

/// Adds one output row to the accumulators. Columns in `inner` have all taps; the others are checked.
template <int Lanes, int Channels, int Taps, class V>
HWY_INLINE void add_row(const WeightsJob& job, const float* HWY_RESTRICT diff, const float* HWY_RESTRICT src,
                        int64_t first_tap, base::Range inner, V (&acc)[Channels][Taps]) {
  const hn::FixedTag<float, Lanes> d;
  const int64_t plane = job.dst_plane * Lanes;
  const auto border = [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t x = begin; x < end; ++x) {
      const int64_t at = x * job.stride + first_tap - job.pad_left;
      HWY_UNROLL(8)
      for (int t = 0; t < Taps; ++t) {
        if (at + t < 0 || at + t >= job.src_width) continue;
        const V s = in_register(hn::LoadU(d, src + (at + t) * Lanes));
        HWY_UNROLL(8)
        for (int c = 0; c < Channels; ++c) {
          acc[c][t] = hn::MulAdd(s, hn::LoadU(d, diff + c * plane + x * Lanes), acc[c][t]);
        }
      }
    }
  };
  border(0, inner.begin);
  const float* HWY_RESTRICT s = src + (inner.begin * job.stride + first_tap - job.pad_left) * Lanes;
  for (int64_t x = inner.begin; x < inner.end; ++x) {
    V g[Channels];
    HWY_UNROLL(8)
    for (int c = 0; c < Channels; ++c) g[c] = hn::LoadU(d, diff + c * plane + x * Lanes);
    HWY_UNROLL(8)
    for (int t = 0; t < Taps; ++t) {
      const V v = in_register(hn::LoadU(d, s + t * Lanes));
      HWY_UNROLL(8)
      for (int c = 0; c < Channels; ++c) acc[c][t] = hn::MulAdd(v, g[c], acc[c][t]);
    }
    s += job.stride * Lanes;
  }
  border(inner.end, job.dst_width);
}

/// Calls body(block, rows of the block) for each block that the rows of all blocks cover.
template <class Body>
HWY_INLINE void for_blocks(const WeightsJob& job, base::Range rows, const Body& body) {
  for (int64_t block = rows.begin / job.dst_height; block * job.dst_height < rows.end; ++block) {
    const int64_t first = block * job.dst_height;
    body(block, base::Range{std::max(rows.begin - first, int64_t{0}), std::min(rows.end - first, job.dst_height)});
  }
}

/// Writes the tile's sums over `rows` to `total` (plain weights), or adds them.
template <int Lanes, int Channels, int Taps>
void weights_tile(const WeightsJob& job, const Tile& tile, base::Range rows, bool add, float* total) {
  const hn::FixedTag<float, Lanes> d;
  using V = hn::Vec<decltype(d)>;
  V acc[Channels][Taps];
  HWY_UNROLL(8)
  for (int c = 0; c < Channels; ++c) {
    HWY_UNROLL(8)
    for (int t = 0; t < Taps; ++t) acc[c][t] = hn::Zero(d);
  }
  const base::Range valid = job.valid_rows(tile.kernel_row);
  const base::Range inner = job.inner_columns(tile.taps);
  for_blocks(job, rows, [&](int64_t block, base::Range of_block) HWY_ATTR {
    const float* src = job.src + (block * job.src_channels + tile.src_channel) * job.src_plane * Lanes;
    const float* diff = job.diff_dst + (block * job.dst_channels + tile.channels.begin) * job.dst_plane * Lanes;
    const int64_t end = std::min(of_block.end, valid.end);
    for (int64_t y = std::max(of_block.begin, valid.begin); y < end; ++y) {
      const int64_t src_row = y * job.stride_rows + tile.kernel_row - job.pad_top;
      add_row<Lanes, Channels, Taps>(job, diff + y * job.dst_width * Lanes, src + src_row * job.src_width * Lanes,
                                     tile.taps.begin, inner, acc);
    }
  });
  HWY_ALIGN float sums[Channels * Taps + 4];
  sum_lanes<Channels * Taps>(d, &acc[0][0], sums);
  for (int c = 0; c < Channels; ++c) {
    float* weights =
        total + job.weight_index(tile.channels.begin + c, tile.src_channel, tile.kernel_row) + tile.taps.begin;
    for (int t = 0; t < Taps; ++t) weights[t] = add ? weights[t] + sums[c * Taps + t] : sums[c * Taps + t];
  }
}

using TileFn = void (*)(const WeightsJob&, const Tile&, base::Range, bool, float*);
using TileTable = std::array<std::array<TileFn, kChannels>, kTaps>;

template <int Lanes, int Taps, int Channels>
constexpr TileFn tile_fn() {
  if constexpr (Channels <= tile_channels(Taps)) return weights_tile<Lanes, Channels, Taps>;
  return nullptr;
}

template <int Lanes, int Taps, size_t... C>
constexpr std::array<TileFn, kChannels> tile_row(std::index_sequence<C...>) {
  return {tile_fn<Lanes, Taps, static_cast<int>(C) + 1>()...};
}

template <int Lanes, size_t... T>
constexpr TileTable tile_table(std::index_sequence<T...>) {
  return {tile_row<Lanes, static_cast<int>(T) + 1>(std::make_index_sequence<kChannels>())...};
}

template <int Lanes>
constexpr TileTable kTiles = tile_table<Lanes>(std::make_index_sequence<kTaps>());

/// total[c] = the sum of channel c over `rows`, or adds it.
template <int Lanes>
void bias_sums(const WeightsJob& job, base::Range channels, base::Range rows, bool add, float* total) {
  const hn::FixedTag<float, Lanes> d;
  for (int64_t c = channels.begin; c < channels.end; ++c) {
    auto a = hn::Zero(d);
    auto b = hn::Zero(d);
    auto e = hn::Zero(d);
    auto f = hn::Zero(d);
    for_blocks(job, rows, [&](int64_t block, base::Range of_block) HWY_ATTR {
      const float* diff = job.diff_dst + (block * job.dst_channels + c) * job.dst_plane * Lanes;
      int64_t i = of_block.begin * job.dst_width;
      const int64_t end = of_block.end * job.dst_width;
      for (; i + 4 <= end; i += 4) {
        a = hn::Add(a, hn::LoadU(d, diff + i * Lanes));
        b = hn::Add(b, hn::LoadU(d, diff + (i + 1) * Lanes));
        e = hn::Add(e, hn::LoadU(d, diff + (i + 2) * Lanes));
        f = hn::Add(f, hn::LoadU(d, diff + (i + 3) * Lanes));
      }
      for (; i < end; ++i) a = hn::Add(a, hn::LoadU(d, diff + i * Lanes));
    });
    HWY_ALIGN float sums[4];
    hn::Store(sum_lanes4(d, a, b, e, f), hn::FixedTag<float, 4>(), sums);
    const float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    total[c] = add ? total[c] + sum : sum;
  }
}

/// The cut of the weights into tiles. Tiles of the same channels follow each other, since they read the same diff_dst.
struct Tiling {
  explicit Tiling(const WeightsJob& job)
      : taps(static_cast<int>((job.kernel_width + kTaps - 1) / kTaps)),
        widest(tile_channels(static_cast<int>((job.kernel_width + taps - 1) / taps))),
        channels(static_cast<int>((job.dst_channels + widest - 1) / widest)),
        count(channels * job.src_channels * job.kernel_height * taps) {}

  [[nodiscard]] Tile tile(const WeightsJob& job, int64_t index) const {
    const int64_t row = index / taps;
    const int64_t plane = row / job.kernel_height;
    return {base::share(job.dst_channels, static_cast<int>(plane / job.src_channels), channels),
            plane % job.src_channels, row % job.kernel_height,
            base::share(job.kernel_width, static_cast<int>(index % taps), taps)};
  }

  int taps;
  int widest;
  int channels;
  int64_t count;
};

/// Computes the tiles [begin, end) of one strip, a group of rows after the other. The first tile of each range of
/// channels brings its biases.
template <int Lanes>
void strip_tiles(const WeightsJob& job, const Tiling& tiling, int strip, base::Range tiles, const WeightsSums& sums) {
  const base::Range rows = base::share(job.rows, strip, job.strips);
  float* weights = sums.weights + strip * sums.stride;
  for (int64_t begin = rows.begin; begin < rows.end; begin += job.group) {
    const base::Range group{begin, std::min(begin + job.group, rows.end)};
    const bool add = begin > rows.begin;
    for (int64_t i = tiles.begin; i < tiles.end; ++i) {
      const Tile tile = tiling.tile(job, i);
      const bool first = tile.src_channel == 0 && tile.kernel_row == 0 && tile.taps.begin == 0;
      if (first && sums.biases != nullptr) {
        bias_sums<Lanes>(job, tile.channels, group, add, sums.biases + strip * sums.stride);
      }
      kTiles<Lanes>[tile.taps.size() - 1][tile.channels.size() - 1](job, tile, group, add, weights);
    }
  }
}

/// Computes a thread's share of the pairs of strip and tile.
template <int Lanes>
void weights_share(const WeightsJob& job, const WeightsSums& sums, int thread, int threads) {
  const Tiling tiling(job);
  const base::Range mine = base::aligned_share(job.strips * tiling.count, thread, threads);
  for (int64_t i = mine.begin; i < mine.end;) {
    const int64_t tile = i % tiling.count;
    const int64_t end = std::min(tiling.count, tile + mine.end - i);
    strip_tiles<Lanes>(job, tiling, static_cast<int>(i / tiling.count), {tile, end}, sums);
    i += end - tile;
  }
}

void conv_weights(const WeightsJob& job, const WeightsSums& sums, int thread, int threads) {
#if HWY_TARGET == HWY_AVX3
  if (job.lanes == 16) return weights_share<16>(job, sums, thread, threads);
#endif
  weights_share<std::min(kLanes, 8)>(job, sums, thread, threads);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::backend::cpu {
namespace {

HWY_EXPORT(conv_weights);

/// Multiplications for which one more thread pays off.
constexpr int64_t kGrain = 100'000;

/// Bytes of src and diff_dst that may be read repeatedly.
constexpr int64_t kCacheBytes = 400'000;

/// The most strips, and the least positions of a strip: adding up the lanes of its sums must not matter.
constexpr int64_t kStrips = 16;
constexpr int64_t kPositions = 192;

/// Additions of strips for which one more thread pays off.
constexpr int64_t kSumGrain = 2'048;

int64_t weights_size(const BatchConv& conv) {
  return conv.out_channels * conv.in_channels * conv.window.kernel_height * conv.window.kernel_width;
}

int strips_of(const BatchConv& conv) {
  const int64_t rows = batch_blocks(conv.batch, conv.lanes) * conv.out_height();
  const int64_t fitting = std::min(rows * conv.out_width() / kPositions, kStrips);
  return static_cast<int>(std::max<int64_t>(std::min(fitting, rows), 1));
}

/// Returns the floats from one strip's sums to the next one's: whole cache lines.
int64_t strip_size(const BatchConv& conv) {
  constexpr int64_t kLine = 16;
  return (weights_size(conv) + conv.out_channels + kLine - 1) / kLine * kLine;
}

WeightsJob make_job(const BatchConv& conv, const float* src, const float* diff_dst) {
  WeightsJob job;
  job.lanes = conv.lanes;
  job.src_channels = conv.in_channels;
  job.src_height = conv.in_height;
  job.src_width = conv.in_width;
  job.src_plane = conv.in_height * conv.in_width;
  job.dst_channels = conv.out_channels;
  job.dst_height = conv.out_height();
  job.dst_width = conv.out_width();
  job.dst_plane = job.dst_height * job.dst_width;
  job.kernel_height = conv.window.kernel_height;
  job.kernel_width = conv.window.kernel_width;
  job.stride_rows = conv.window.stride_height;
  job.stride = conv.window.stride_width;
  job.pad_top = conv.window.pad_top;
  job.pad_left = conv.window.pad_left;
  job.rows = batch_blocks(conv.batch, conv.lanes) * job.dst_height;
  job.strips = strips_of(conv);
  const int64_t src_row = job.src_channels * job.stride_rows * job.src_width;
  const int64_t row_bytes = (src_row + job.dst_channels * job.dst_width) * job.lanes * 4;
  job.group = std::max(kCacheBytes / std::max<int64_t>(row_bytes, 1), int64_t{1});
  job.src = src;
  job.diff_dst = diff_dst;
  return job;
}

/// total[i] = the sum of value i of all strips, in order.
void add_strips(const float* strips, int count, int64_t stride, int64_t size, float* total, int threads) {
  base::parallel(base::split_for(size * count, kSumGrain, threads), [&](int thread, int parts) {
    const base::Range mine = base::share(size, thread, parts, 16);
    std::copy_n(strips + mine.begin, mine.size(), total + mine.begin);
    for (int strip = 1; strip < count; ++strip) {
      const float* values = strips + strip * stride;
      for (int64_t i = mine.begin; i < mine.end; ++i) total[i] += values[i];
    }
  });
}

}  // namespace

int64_t batch_conv_scratch(const BatchConv& conv, ConvPass pass, int /*threads*/) {
  const int strips = strips_of(conv);
  return pass == ConvPass::backward_weights && strips > 1 ? strips * strip_size(conv) : 0;
}

void batch_conv_backward_weights(const BatchConv& conv, const float* src, const float* diff_dst, float* diff_weights,
                                 float* diff_bias, float* scratch, int threads) {
  const WeightsJob job = make_job(conv, src, diff_dst);
  const int64_t size = weights_size(conv);
  const bool one = job.strips == 1;
  WeightsSums sums{one ? diff_weights : scratch, diff_bias, one ? 0 : strip_size(conv)};
  if (!one && diff_bias != nullptr) sums.biases = scratch + size;
  if (job.rows == 0 || job.dst_width == 0) {
    std::fill_n(diff_weights, size, 0.0F);
    if (diff_bias != nullptr) std::fill_n(diff_bias, conv.out_channels, 0.0F);
    return;
  }
  const int64_t work = size * conv.out_height() * conv.out_width() * conv.batch;
  base::parallel(base::split_for(work, kGrain, threads), [&](int thread, int parts) {
    HWY_DYNAMIC_DISPATCH(conv_weights)(job, sums, thread, parts);
  });
  if (one) return;
  add_strips(sums.weights, job.strips, sums.stride, size, diff_weights, threads);
  if (diff_bias != nullptr) add_strips(sums.biases, job.strips, sums.stride, conv.out_channels, diff_bias, threads);
}

}  // namespace lockstep::backend::cpu
#endif  // HWY_ONCE
