// The gradient of a convolution by its weights: each weight is a sum over images, rows and columns. A tile of
// channels times neighbouring taps is summed in registers, lane by lane; the lanes are added up at the end.
#include <array>
#include <utility>

#include "backend/cpu/kernels/batch_conv.h"
#include "backend/cpu/kernels/batch_layout.h"
#include "base/parallel.h"

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

/// Adds the tile's sums over `blocks` to `total` (the plain weights).
template <int Lanes, int Channels, int Taps>
void weights_tile(const WeightsJob& job, const Tile& tile, base::Range blocks, float* total) {
  const hn::FixedTag<float, Lanes> d;
  using V = hn::Vec<decltype(d)>;
  V acc[Channels][Taps];
  HWY_UNROLL(8)
  for (int c = 0; c < Channels; ++c) {
    HWY_UNROLL(8)
    for (int t = 0; t < Taps; ++t) acc[c][t] = hn::Zero(d);
  }
  const base::Range rows = job.valid_rows(tile.kernel_row);
  const base::Range inner = job.inner_columns(tile.taps);
  for (int64_t block = blocks.begin; block < blocks.end; ++block) {
    const float* src = job.src + (block * job.src_channels + tile.src_channel) * job.src_plane * Lanes;
    const float* diff = job.diff_dst + (block * job.dst_channels + tile.channels.begin) * job.dst_plane * Lanes;
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      const int64_t src_row = y * job.stride_rows + tile.kernel_row - job.pad_top;
      add_row<Lanes, Channels, Taps>(job, diff + y * job.dst_width * Lanes, src + src_row * job.src_width * Lanes,
                                     tile.taps.begin, inner, acc);
    }
  }
  HWY_ALIGN float sums[Channels * Taps + 4];
  sum_lanes<Channels * Taps>(d, &acc[0][0], sums);
  for (int c = 0; c < Channels; ++c) {
    float* weights =
        total + job.weight_index(tile.channels.begin + c, tile.src_channel, tile.kernel_row) + tile.taps.begin;
    for (int t = 0; t < Taps; ++t) weights[t] += sums[c * Taps + t];
  }
}

using TileFn = void (*)(const WeightsJob&, const Tile&, base::Range, float*);
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

/// diff_bias[c] += the sum of channel c over `blocks`.
template <int Lanes>
void bias_sums(const WeightsJob& job, base::Range channels, base::Range blocks, float* total) {
  const hn::FixedTag<float, Lanes> d;
  for (int64_t c = channels.begin; c < channels.end; ++c) {
    auto a = hn::Zero(d);
    auto b = hn::Zero(d);
    auto e = hn::Zero(d);
    auto f = hn::Zero(d);
    for (int64_t block = blocks.begin; block < blocks.end; ++block) {
      const float* diff = job.diff_dst + (block * job.dst_channels + c) * job.dst_plane * Lanes;
      int64_t i = 0;
      for (; i + 4 <= job.dst_plane; i += 4) {
        a = hn::Add(a, hn::LoadU(d, diff + i * Lanes));
        b = hn::Add(b, hn::LoadU(d, diff + (i + 1) * Lanes));
        e = hn::Add(e, hn::LoadU(d, diff + (i + 2) * Lanes));
        f = hn::Add(f, hn::LoadU(d, diff + (i + 3) * Lanes));
      }
      for (; i < job.dst_plane; ++i) a = hn::Add(a, hn::LoadU(d, diff + i * Lanes));
    }
    HWY_ALIGN float sums[4];
    hn::Store(sum_lanes4(d, a, b, e, f), hn::FixedTag<float, 4>(), sums);
    total[c] += (sums[0] + sums[1]) + (sums[2] + sums[3]);
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

/// Computes a thread's share of the weights over its blocks, a few blocks at a time so that they stay in cache.
template <int Lanes>
void weights_share(const WeightsJob& job, const WeightsShare& share) {
  const Tiling tiling(job);
  const base::Range mine = base::share(tiling.count, share.tile_part, share.tile_parts);
  const base::Range biases = base::share(job.dst_channels, share.tile_part, share.tile_parts);
  for (int64_t begin = share.blocks.begin; begin < share.blocks.end; begin += job.group) {
    const base::Range blocks{begin, std::min(begin + job.group, share.blocks.end)};
    if (share.diff_bias != nullptr) bias_sums<Lanes>(job, biases, blocks, share.diff_bias);
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      const Tile tile = tiling.tile(job, i);
      kTiles<Lanes>[tile.taps.size() - 1][tile.channels.size() - 1](job, tile, blocks, share.diff_weights);
    }
  }
}

void conv_weights(const WeightsJob& job, const WeightsShare& share) {
#if HWY_TARGET == HWY_AVX3
  if (job.lanes == 16) return weights_share<16>(job, share);
#endif
  weights_share<std::min(kLanes, 8)>(job, share);
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

int64_t weights_size(const BatchConv& conv) {
  return conv.out_channels * conv.in_channels * conv.window.kernel_height * conv.window.kernel_width;
}

base::Split split_of(const BatchConv& conv, int threads) {
  const int64_t work = weights_size(conv) * conv.out_height() * conv.out_width() * conv.batch;
  return base::split_for(work, kGrain, threads);
}

/// Returns true if threads split the blocks, each with its own sums, which they do if blocks divide well. Otherwise
/// they split the weights.
bool splits_blocks(const BatchConv& conv, int threads) {
  const int64_t blocks = batch_blocks(conv.batch, conv.lanes);
  return threads > 1 && (blocks % threads == 0 || blocks >= 8 * threads);
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
  const int64_t block_bytes = (job.src_channels * job.src_plane + job.dst_channels * job.dst_plane) * job.lanes * 4;
  job.group = std::clamp<int64_t>(kCacheBytes / std::max<int64_t>(block_bytes, 1), 1, 64);
  job.src = src;
  job.diff_dst = diff_dst;
  return job;
}

}  // namespace

int64_t batch_conv_scratch(const BatchConv& conv, ConvPass pass, int threads) {
  if (pass != ConvPass::backward_weights) return 0;
  const int count = split_of(conv, threads).parts;
  return splits_blocks(conv, count) ? (count - 1) * (weights_size(conv) + conv.out_channels) : 0;
}

void batch_conv_backward_weights(const BatchConv& conv, const float* src, const float* diff_dst, float* diff_weights,
                                 float* diff_bias, float* scratch, int threads) {
  const WeightsJob job = make_job(conv, src, diff_dst);
  const int64_t blocks = batch_blocks(conv.batch, conv.lanes);
  const int64_t size = weights_size(conv);
  const int64_t stride = size + conv.out_channels;
  const base::Split split = split_of(conv, threads);
  const bool by_blocks = splits_blocks(conv, split.parts);
  std::fill_n(diff_weights, size, 0.0F);
  if (diff_bias != nullptr) std::fill_n(diff_bias, conv.out_channels, 0.0F);
  base::parallel(split, [&](int thread, int parts) {
    WeightsShare share{{0, blocks}, thread, parts, diff_weights, diff_bias};
    if (by_blocks) {
      share = {base::share(blocks, thread, parts), 0, 1, diff_weights, diff_bias};
      if (thread > 0) {
        share.diff_weights = scratch + (thread - 1) * stride;
        if (diff_bias != nullptr) share.diff_bias = share.diff_weights + size;
        std::fill_n(share.diff_weights, stride, 0.0F);
      }
    }
    HWY_DYNAMIC_DISPATCH(conv_weights)(job, share);
  });
  if (!by_blocks) return;
  for (int thread = 1; thread < split.parts; ++thread) {
    const float* partial = scratch + (thread - 1) * stride;
    for (int64_t i = 0; i < size; ++i) diff_weights[i] += partial[i];
    for (int64_t i = 0; i < conv.out_channels && diff_bias != nullptr; ++i) diff_bias[i] += partial[size + i];
  }
}

}  // namespace lockstep::backend::cpu
#endif  // HWY_ONCE
