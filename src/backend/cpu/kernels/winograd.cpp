#include "backend/cpu/kernels/winograd.h"

#include <cmath>

#include "backend/cpu/kernels/gemm.h"
#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/winograd.cpp"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/kernels/simd-inl.h"
#include "backend/cpu/kernels/winograd_layout.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {
namespace {

using V = hn::Vec<Full>;

// The transforms evaluate polynomials at 0, +-a, +-b and infinity. These points round better than +-1 and +-2.
constexpr float kA = 0.625F, kA2 = kA * kA, kA3 = kA2 * kA;
constexpr float kB = 1.5F, kB2 = kB * kB, kB3 = kB2 * kB;
// Divisors of the weights' polynomials at 0, +-a and +-b.
constexpr float kAtZero = 1.0F / (kA2 * kB2);
constexpr float kAtA = 1.0F / (2.0F * kA2 * (kA2 - kB2));
constexpr float kAtB = 1.0F / (2.0F * kB2 * (kB2 - kA2));

/// a x + y.
HWY_INLINE V times_plus(float a, V x, V y) { return hn::MulAdd(hn::Set(Full(), a), x, y); }
HWY_INLINE V times(float a, V x) { return hn::Mul(hn::Set(Full(), a), x); }

// Each function transforms one axis, over vectors `step` apart; x may be y. There are transforms of six pixels, of
// three weights, and of six points back to four results. Gradients use the transposes of the last two.

HWY_INLINE void transform_pixels(const V* x, V* y, int step) {
  const V even_a = times_plus(-kB2, x[2 * step], x[4 * step]);
  const V even_b = times_plus(-kA2, x[2 * step], x[4 * step]);
  const V odd_a = times(kA, times_plus(-kB2, x[step], x[3 * step]));
  const V odd_b = times(kB, times_plus(-kA2, x[step], x[3 * step]));
  y[0] = times_plus(kA2 * kB2, x[0], times_plus(-(kA2 + kB2), x[2 * step], x[4 * step]));
  y[5 * step] = times_plus(kA2 * kB2, x[step], times_plus(-(kA2 + kB2), x[3 * step], x[5 * step]));
  y[step] = hn::Add(even_a, odd_a);
  y[2 * step] = hn::Sub(even_a, odd_a);
  y[3 * step] = hn::Add(even_b, odd_b);
  y[4 * step] = hn::Sub(even_b, odd_b);
}

HWY_INLINE void transform_weights(const V* x, V* y, int step) {
  const V even_a = times_plus(kA2, x[2 * step], x[0]);
  const V even_b = times_plus(kB2, x[2 * step], x[0]);
  const V middle = x[step];
  y[5 * step] = x[2 * step];
  y[0] = times(kAtZero, x[0]);
  y[step] = times(kAtA, times_plus(kA, middle, even_a));
  y[2 * step] = times(kAtA, times_plus(-kA, middle, even_a));
  y[3 * step] = times(kAtB, times_plus(kB, middle, even_b));
  y[4 * step] = times(kAtB, times_plus(-kB, middle, even_b));
}

HWY_INLINE void transform_weights_back(const V* x, V* y, int step) {
  const V even_a = times(kAtA, hn::Add(x[step], x[2 * step])), odd_a = times(kAtA, hn::Sub(x[step], x[2 * step]));
  const V even_b = times(kAtB, hn::Add(x[3 * step], x[4 * step])),
          odd_b = times(kAtB, hn::Sub(x[3 * step], x[4 * step]));
  y[0] = times_plus(kAtZero, x[0], hn::Add(even_a, even_b));
  y[step] = times_plus(kA, odd_a, times(kB, odd_b));
  y[2 * step] = times_plus(kA2, even_a, times_plus(kB2, even_b, x[5 * step]));
}

HWY_INLINE void transform_results(const V* x, V* y, int step) {
  const V even_a = hn::Add(x[step], x[2 * step]), odd_a = hn::Sub(x[step], x[2 * step]);
  const V even_b = hn::Add(x[3 * step], x[4 * step]), odd_b = hn::Sub(x[3 * step], x[4 * step]);
  y[0] = hn::Add(x[0], hn::Add(even_a, even_b));
  y[step] = times_plus(kA, odd_a, times(kB, odd_b));
  y[2 * step] = times_plus(kA2, even_a, times(kB2, even_b));
  y[3 * step] = times_plus(kA3, odd_a, times_plus(kB3, odd_b, x[5 * step]));
}

HWY_INLINE void transform_results_back(const V* x, V* y, int step) {
  const V even_a = times_plus(kA2, x[2 * step], x[0]), odd_a = times_plus(kA3, x[3 * step], times(kA, x[step]));
  const V even_b = times_plus(kB2, x[2 * step], x[0]), odd_b = times_plus(kB3, x[3 * step], times(kB, x[step]));
  y[5 * step] = x[3 * step];
  y[0] = x[0];
  y[step] = hn::Add(even_a, odd_a);
  y[2 * step] = hn::Sub(even_a, odd_a);
  y[3 * step] = hn::Add(even_b, odd_b);
  y[4 * step] = hn::Sub(even_b, odd_b);
}

/// A square of rows x columns pixels of one channel vector at (top, left) of an image; zero outside the image.
template <int Side>
HWY_INLINE void load_square(const float* plane, int64_t height, int64_t width, int64_t top, int64_t left, int64_t block,
                            V* square) {
  const Full d;
  const bool inside = top >= 0 && left >= 0 && top + Side <= height && left + Side <= width;
  for (int64_t y = 0; y < Side; ++y) {
    for (int64_t x = 0; x < Side; ++x) {
      const bool there = inside || (top + y >= 0 && top + y < height && left + x >= 0 && left + x < width);
      square[y * 6 + x] = there ? hn::LoadU(d, plane + ((top + y) * width + left + x) * block) : hn::Zero(d);
    }
  }
}

struct Tile {
  int64_t image, top, left;  ///< indices of the results
};

Tile tile_at(const Winograd& w, int64_t index) {
  const int64_t in_image = index % w.tiles();
  return {index / w.tiles(), in_image / w.tiles_wide() * 4, in_image % w.tiles_wide() * 4};
}

/// Gathers and transforms tiles [begin, end) of the images: points[p][tile][channel].
void gather_pixels(const Winograd& w, const float* src, base::Range tiles, const PointRows& rows, float* points) {
  const Full d;
  V x[36];
  for (int64_t t = tiles.begin; t < tiles.end; ++t) {
    const Tile tile = tile_at(w, t);
    for (int64_t c = 0; c < w.in_channels; c += kLanes) {
      const float* plane =
          src + tile.image * w.image_size() + c / w.block * w.in_height * w.in_width * w.block + c % w.block;
      load_square<6>(plane, w.in_height, w.in_width, tile.top - w.pad_top, tile.left - w.pad_left, w.block, x);
      for (int i = 0; i < 6; ++i) transform_pixels(x + i, x + i, 6);
      for (int i = 0; i < 6; ++i) transform_pixels(x + 6 * i, x + 6 * i, 1);
      float* to = points + t * rows.row + c;
      for (int p = 0; p < 36; ++p) hn::StoreU(x[p], d, to + p * rows.point);
    }
  }
}

/// Transforms the gradients of tiles of results into panels.
void gather_gradients(const Winograd& w, const float* diff_dst, base::Range tiles, const PointPanels& panels,
                      float* points) {
  const Full d;
  V x[36];
  for (int64_t t = tiles.begin; t < tiles.end; ++t) {
    const Tile tile = tile_at(w, t);
    for (int64_t o = 0; o < w.out_channels; o += kLanes) {
      const float* plane =
          diff_dst + tile.image * w.result_size() + o / w.block * w.out_height * w.out_width * w.block + o % w.block;
      load_square<4>(plane, w.out_height, w.out_width, tile.top, tile.left, w.block, x);
      for (int i = 0; i < 4; ++i) transform_results_back(x + i, x + i, 6);
      for (int i = 0; i < 6; ++i) transform_results_back(x + 6 * i, x + 6 * i, 1);
      float* to = points + panels.at(t, o);
      for (int p = 0; p < 36; ++p) hn::StoreU(x[p], d, to + p * panels.point);
    }
  }
}

/// Transforms the products of tiles [begin, end) back to results.
void scatter_results(const Winograd& w, const float* points, base::Range tiles, const PointRows& rows,
                     const float* bias, bool relu, float* dst) {
  const Full d;
  V x[36];
  for (int64_t t = tiles.begin; t < tiles.end; ++t) {
    const Tile tile = tile_at(w, t);
    const int64_t high = std::min<int64_t>(4, w.out_height - tile.top);
    const int64_t wide = std::min<int64_t>(4, w.out_width - tile.left);
    for (int64_t o = 0; o < w.out_channels; o += kLanes) {
      const float* from = points + t * rows.row + o;
      for (int p = 0; p < 36; ++p) x[p] = hn::LoadU(d, from + p * rows.point);
      for (int i = 0; i < 6; ++i) transform_results(x + i, x + i, 6);
      for (int i = 0; i < 4; ++i) transform_results(x + 6 * i, x + 6 * i, 1);
      const V add = bias != nullptr ? hn::LoadU(d, bias + o) : hn::Zero(d);
      const V least = relu ? hn::Zero(d) : hn::Set(d, -HUGE_VALF);
      float* to = dst + tile.image * w.result_size() + o / w.block * w.out_height * w.out_width * w.block + o % w.block;
      for (int64_t i = 0; i < high; ++i) {
        for (int64_t j = 0; j < wide; ++j) {
          const V value = hn::Max(least, hn::Add(x[i * 6 + j], add));
          hn::StoreU(value, d, to + ((tile.top + i) * w.out_width + tile.left + j) * w.block);
        }
      }
    }
  }
}

/// Transforms the weights of one input channel.
void spread_weights(const Winograd& w, bool backward, int64_t c, const PointPanels& panels, const float* src,
                    float* dst) {
  const Full d;
  V x[36];
  for (int64_t o = 0; o < w.out_channels; o += kLanes) {
    alignas(64) float taps[9][kLanes];
    for (int lane = 0; lane < kLanes; ++lane) {
      const float* from = src + (backward ? c * w.out_channels + o + lane : (o + lane) * w.in_channels + c) * 9;
      for (int tap = 0; tap < 9; ++tap) taps[backward ? 8 - tap : tap][lane] = from[tap];
    }
    for (int tap = 0; tap < 9; ++tap) x[tap / 3 * 6 + tap % 3] = hn::Load(d, taps[tap]);
    for (int i = 0; i < 3; ++i) transform_weights(x + i, x + i, 6);
    for (int i = 0; i < 6; ++i) transform_weights(x + 6 * i, x + 6 * i, 1);
    float* to = dst + panels.at(c, o);
    for (int p = 0; p < 36; ++p) hn::StoreU(x[p], d, to + p * panels.point);
  }
}

/// Computes the plain gradients of the weights of one input channel.
void collect_gradients(const Winograd& w, int64_t c, const PointPanels& panels, const float* src, float* dst) {
  const Full d;
  V x[36];
  for (int64_t o = 0; o < w.out_channels; o += kLanes) {
    const float* from = src + panels.at(c, o);
    for (int p = 0; p < 36; ++p) x[p] = hn::LoadU(d, from + p * panels.point);
    for (int i = 0; i < 6; ++i) transform_weights_back(x + i, x + i, 6);
    for (int i = 0; i < 3; ++i) transform_weights_back(x + 6 * i, x + 6 * i, 1);
    alignas(64) float taps[9][kLanes];
    for (int tap = 0; tap < 9; ++tap) hn::Store(x[tap / 3 * 6 + tap % 3], d, taps[tap]);
    for (int lane = 0; lane < kLanes; ++lane) {
      float* to = dst + ((o + lane) * w.in_channels + c) * 9;
      for (int tap = 0; tap < 9; ++tap) to[tap] = taps[tap][lane];
    }
  }
}

/// Sums one block of channels over all images.
void sum_block(const Winograd& w, int64_t images, int64_t first, const float* diff_dst, float* dst) {
  const Full d;
  const int64_t pixels = w.out_height * w.out_width;
  for (int64_t o = first; o < first + w.block; o += kLanes) {
    V sums[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    for (int64_t image = 0; image < images; ++image) {
      const float* plane = diff_dst + image * w.result_size() + o / w.block * pixels * w.block + o % w.block;
      for (int64_t i = 0; i < pixels; ++i) sums[i % 4] = hn::Add(sums[i % 4], hn::LoadU(d, plane + i * w.block));
    }
    hn::StoreU(hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3])), d, dst + o);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::backend::cpu {
namespace {

HWY_EXPORT(gather_pixels);
HWY_EXPORT(gather_gradients);
HWY_EXPORT(scatter_results);
HWY_EXPORT(spread_weights);
HWY_EXPORT(collect_gradients);
HWY_EXPORT(sum_block);

template <class Body>
void split(int64_t count, int threads, Body body) {
  base::parallel({threads, threads}, [&](int part, int parts) {
    const base::Range mine = base::share(count, part, parts);
    if (mine.size() > 0) body(mine);
  });
}

/// Computes the 36 products, panel by panel: rows[p] (or its transpose) times panels[p].
template <class Body>
void for_each_panel(const PointPanels& panels, int threads, Body body) {
  split(36 * panels.count(), threads, [&](base::Range mine) {
    for (int64_t i = mine.begin; i < mine.end; ++i) body(i / panels.count(), i % panels.count());
  });
}

}  // namespace

Winograd winograd_backward(const Winograd& w) {
  return {w.out_channels, w.in_channels, w.out_height,   w.out_width, w.in_height,
          w.in_width,     2 - w.pad_top, 2 - w.pad_left, w.block};
}

int64_t winograd_weights_size(const Winograd& w) { return PointPanels(w.in_channels, w.out_channels, w.block).size(); }

int64_t winograd_scratch(const Winograd& w, int64_t images) {
  const int64_t tiles = images * w.tiles();
  const int64_t results =
      std::max(PointRows(tiles, w.out_channels).size(), PointPanels(tiles, w.out_channels, w.block).size());
  return PointRows(tiles, w.in_channels).size() + results;
}

void winograd_weights(const Winograd& w, bool backward, const float* src, float* dst, int threads) {
  const PointPanels panels(w.in_channels, w.out_channels, w.block);
  split(w.in_channels, threads, [&](base::Range mine) {
    for (int64_t c = mine.begin; c < mine.end; ++c) {
      HWY_DYNAMIC_DISPATCH(spread_weights)(w, backward, c, panels, src, dst);
    }
  });
}

void winograd_forward(const Winograd& w, int64_t images, const float* src, const float* weights, const float* bias,
                      bool relu, float* dst, float* scratch, int threads) {
  const int64_t tiles = images * w.tiles();
  const PointRows pixels(tiles, w.in_channels);
  const PointRows results(tiles, w.out_channels);
  const PointPanels panels(w.in_channels, w.out_channels, w.block);
  float* const products = scratch + pixels.size();
  split(tiles, threads, [&](base::Range mine) { HWY_DYNAMIC_DISPATCH(gather_pixels)(w, src, mine, pixels, scratch); });
  for_each_panel(panels, threads, [&](int64_t point, int64_t panel) {
    const Gemm product{.m = tiles, .n = panels.width(panel), .k = w.in_channels, .lda = pixels.row, .ldc = results.row};
    gemm(product, scratch + point * pixels.point, weights + point * panels.point + panels.at(panel), nullptr,
         products + point * results.point + panel * panels.widest, nullptr, 1);
  });
  split(tiles, threads, [&](base::Range mine) {
    HWY_DYNAMIC_DISPATCH(scatter_results)(w, products, mine, results, bias, relu, dst);
  });
}

void winograd_grad_weights(const Winograd& w, int64_t images, const float* src, const float* diff_dst, bool add,
                           float* diff_weights, float* scratch, int threads) {
  const int64_t tiles = images * w.tiles();
  const PointRows pixels(tiles, w.in_channels);
  const PointPanels gradients(tiles, w.out_channels, w.block);
  const PointPanels panels(w.in_channels, w.out_channels, w.block);
  float* const transformed = scratch + pixels.size();
  split(tiles, threads, [&](base::Range mine) {
    HWY_DYNAMIC_DISPATCH(gather_pixels)(w, src, mine, pixels, scratch);
    HWY_DYNAMIC_DISPATCH(gather_gradients)(w, diff_dst, mine, gradients, transformed);
  });
  for_each_panel(panels, threads, [&](int64_t point, int64_t panel) {
    const Gemm product{.m = w.in_channels,
                       .n = panels.width(panel),
                       .k = tiles,
                       .transpose_a = true,
                       .lda = pixels.row,
                       .accumulate = add};
    gemm(product, scratch + point * pixels.point, transformed + point * gradients.point + gradients.at(panel), nullptr,
         diff_weights + point * panels.point + panels.at(panel), nullptr, 1);
  });
}

void winograd_plain_gradients(const Winograd& w, const float* src, float* dst, int threads) {
  const PointPanels panels(w.in_channels, w.out_channels, w.block);
  split(w.in_channels, threads, [&](base::Range mine) {
    for (int64_t c = mine.begin; c < mine.end; ++c) {
      HWY_DYNAMIC_DISPATCH(collect_gradients)(w, c, panels, src, dst);
    }
  });
}

void channel_sums(const Winograd& w, int64_t images, const float* diff_dst, float* dst, int threads) {
  split(w.out_channels / w.block, threads, [&](base::Range mine) {
    for (int64_t b = mine.begin; b < mine.end; ++b) {
      HWY_DYNAMIC_DISPATCH(sum_block)(w, images, b * w.block, diff_dst, dst);
    }
  });
}

}  // namespace lockstep::backend::cpu
#endif
