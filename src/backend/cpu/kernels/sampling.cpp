#include "backend/cpu/kernels/sampling.h"

#include "base/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backend/cpu/kernels/sampling.cpp"
#include "hwy/foreach_target.h"
//
#include "backend/cpu/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep::backend::cpu {
namespace HWY_NAMESPACE {
namespace {

using V = hn::Vec<Full>;

/// Loads up to a vector of (x, y) points; zeros behind the last.
HWY_INLINE void load_points(const float* src, int64_t count, V& x, V& y) {
  const Full d;
  if (count >= kLanes) return hn::LoadInterleaved2(d, src, x, y);
  HWY_ALIGN float padded[2 * kLanes] = {};
  std::copy_n(src, 2 * count, padded);
  hn::LoadInterleaved2(d, padded, x, y);
}

HWY_INLINE void store_points(V x, V y, int64_t count, float* dst) {
  const Full d;
  if (count >= kLanes) return hn::StoreInterleaved2(x, y, d, dst);
  HWY_ALIGN float padded[2 * kLanes];
  hn::StoreInterleaved2(x, y, d, padded);
  std::copy_n(padded, 2 * count, dst);
}

void grid_images(const AffineGrid& s, base::Range images, const float* thetas, float* grid) {
  const Full d;
  for (int64_t n = images.begin; n < images.end; ++n) {
    const float* theta = thetas + n * 6;
    const V along_x = hn::Set(d, theta[0]);
    const V along_y = hn::Set(d, theta[3]);
    for (int64_t row = 0; row < s.height; ++row) {
      const V start_x = hn::Set(d, theta[1] * s.rows[row] + theta[2]);
      const V start_y = hn::Set(d, theta[4] * s.rows[row] + theta[5]);
      float* dst = grid + (n * s.height + row) * s.width * 2;
      for (int64_t i = 0; i < s.width; i += kLanes) {
        const V x = load_some(d, s.columns + i, std::min<int64_t>(kLanes, s.width - i));
        store_points(hn::MulAdd(along_x, x, start_x), hn::MulAdd(along_y, x, start_y), s.width - i, dst + 2 * i);
      }
    }
  }
}

void grid_images_backward(const AffineGrid& s, base::Range images, const float* diff_grid, float* diff_theta) {
  const Full d;
  for (int64_t n = images.begin; n < images.end; ++n) {
    V sums[6];
    for (V& sum : sums) sum = hn::Zero(d);
    for (int64_t row = 0; row < s.height; ++row) {
      const float* src = diff_grid + (n * s.height + row) * s.width * 2;
      const V y = hn::Set(d, s.rows[row]);
      for (int64_t i = 0; i < s.width; i += kLanes) {
        const V x = load_some(d, s.columns + i, std::min<int64_t>(kLanes, s.width - i));
        V to_x;
        V to_y;
        load_points(src + 2 * i, s.width - i, to_x, to_y);
        sums[0] = hn::MulAdd(to_x, x, sums[0]);
        sums[1] = hn::MulAdd(to_x, y, sums[1]);
        sums[2] = hn::Add(to_x, sums[2]);
        sums[3] = hn::MulAdd(to_y, x, sums[3]);
        sums[4] = hn::MulAdd(to_y, y, sums[4]);
        sums[5] = hn::Add(to_y, sums[5]);
      }
    }
    HWY_ALIGN float totals[8];
    sum_lanes<6>(d, sums, totals);
    std::copy_n(totals, 6, diff_theta + n * 6);
  }
}

/// The two neighbours of points along one axis: the first one's index, their weights, and the weights' slopes.
struct Neighbours {
  V first;
  V weight[2];
  V slope[2];
};

HWY_INLINE Neighbours neighbours(V coordinate, float scale, float shift, int64_t size, bool clipped) {
  const Full d;
  const V zero = hn::Zero(d);
  const V one = hn::Set(d, 1.0F);
  const V last = hn::Set(d, static_cast<float>(size - 2));
  const V at = hn::Sub(hn::Mul(hn::Add(coordinate, one), hn::Set(d, scale)), hn::Set(d, shift));
  const V below = hn::Floor(at);
  Neighbours result;
  result.first = hn::Min(hn::Max(below, zero), last);
  const auto outside = hn::Or(hn::Lt(below, zero), hn::Gt(below, last));
  for (int k = 0; k < 2; ++k) {
    const V pixel = k == 0 ? result.first : hn::Add(result.first, one);
    const V hat = hn::Max(zero, hn::Sub(one, hn::Abs(hn::Sub(at, pixel))));  // NaN stays NaN
    const V falling = hn::IfThenElseZero(hn::Eq(pixel, below), hn::Set(d, -scale));
    const V slope = hn::IfThenElse(hn::Eq(pixel, hn::Add(below, one)), hn::Set(d, scale), falling);
    result.weight[k] = clipped ? hn::IfThenZeroElse(outside, hat) : hat;
    result.slope[k] = clipped ? hn::IfThenZeroElse(outside, slope) : slope;
  }
  return result;
}

/// Points processed together. Results in vectors are read back one by one, later, since a load too soon after narrower
/// stores stalls.
constexpr int64_t kStrip = 128;

struct Strip {
  HWY_ALIGN float weight_x[2][kStrip];
  HWY_ALIGN float weight_y[2][kStrip];
  HWY_ALIGN float slope_x[2][kStrip];
  HWY_ALIGN float slope_y[2][kStrip];
  HWY_ALIGN int32_t corner[kStrip];
  HWY_ALIGN float upper[2 * kStrip];  // the two pixels of the upper row, point by point
  HWY_ALIGN float lower[2 * kStrip];
};

/// Finds the corners and weights of up to kStrip points.
HWY_INLINE void locate(const BilinearSample& s, const float* grid, int64_t count, Strip& strip) {
  const Full d;
  const hn::RebindToSigned<Full> di;
  const V width = hn::Set(d, static_cast<float>(s.width));
  for (int64_t i = 0; i < count; i += kLanes) {
    V x;
    V y;
    load_points(grid + 2 * i, count - i, x, y);
    const Neighbours across = neighbours(x, s.scale_x, s.shift, s.width, s.clipped);
    const Neighbours down = neighbours(y, s.scale_y, s.shift, s.height, s.clipped);
    hn::Store(hn::ConvertTo(di, hn::MulAdd(down.first, width, across.first)), di, strip.corner + i);
    for (int k = 0; k < 2; ++k) {
      hn::Store(across.weight[k], d, strip.weight_x[k] + i);
      hn::Store(across.slope[k], d, strip.slope_x[k] + i);
      hn::Store(down.weight[k], d, strip.weight_y[k] + i);
      hn::Store(down.slope[k], d, strip.slope_y[k] + i);
    }
  }
}

/// Copies each point's four pixels.
HWY_INLINE void fetch(const float* plane, int64_t width, int64_t count, Strip& strip) {
  for (int64_t i = 0; i < count; ++i) {
    const float* corner = plane + strip.corner[i];
    std::memcpy(strip.upper + 2 * i, corner, 2 * sizeof(float));
    std::memcpy(strip.lower + 2 * i, corner + width, 2 * sizeof(float));
  }
}

/// A vector of points' four pixels and weights.
struct Corners {
  V upper[2];
  V lower[2];

  HWY_INLINE Corners(const Strip& strip, int64_t i) {
    hn::LoadInterleaved2(Full(), strip.upper + 2 * i, upper[0], upper[1]);
    hn::LoadInterleaved2(Full(), strip.lower + 2 * i, lower[0], lower[1]);
  }
  /// Interpolates with these weights across and down.
  HWY_INLINE V mix(const float (&x)[2][kStrip], const float (&y)[2][kStrip], int64_t i) const {
    const Full d;
    const V left = hn::Load(d, x[0] + i);
    const V right = hn::Load(d, x[1] + i);
    const V above = hn::MulAdd(right, upper[1], hn::Mul(left, upper[0]));
    const V below = hn::MulAdd(right, lower[1], hn::Mul(left, lower[0]));
    return hn::MulAdd(hn::Load(d, y[1] + i), below, hn::Mul(hn::Load(d, y[0] + i), above));
  }
};

void sample_images(const BilinearSample& s, base::Range images, const float* image, const float* grid, float* dst) {
  const Full d;
  Strip strip = {};
  for (int64_t n = images.begin; n < images.end; ++n) {
    for (int64_t begin = 0; begin < s.points; begin += kStrip) {
      const int64_t count = std::min(kStrip, s.points - begin);
      locate(s, grid + (n * s.points + begin) * 2, count, strip);
      for (int64_t plane = n * s.channels; plane < (n + 1) * s.channels; ++plane) {
        fetch(image + plane * s.height * s.width, s.width, count, strip);
        float* out = dst + plane * s.points + begin;
        for (int64_t i = 0; i < count; i += kLanes) {
          const V value = Corners(strip, i).mix(strip.weight_x, strip.weight_y, i);
          store_some(d, value, out + i, std::min<int64_t>(kLanes, count - i));
        }
      }
    }
  }
}

void sample_images_backward_grid(const BilinearSample& s, base::Range images, const float* image, const float* grid,
                                 const float* diff_dst, float* diff_grid) {
  const Full d;
  Strip strip = {};
  HWY_ALIGN float to_x[kStrip];
  HWY_ALIGN float to_y[kStrip];
  for (int64_t n = images.begin; n < images.end; ++n) {
    for (int64_t begin = 0; begin < s.points; begin += kStrip) {
      const int64_t count = std::min(kStrip, s.points - begin);
      locate(s, grid + (n * s.points + begin) * 2, count, strip);
      std::fill_n(to_x, kStrip, 0.0F);
      std::fill_n(to_y, kStrip, 0.0F);
      for (int64_t plane = n * s.channels; plane < (n + 1) * s.channels; ++plane) {
        fetch(image + plane * s.height * s.width, s.width, count, strip);
        const float* diff = diff_dst + plane * s.points + begin;
        for (int64_t i = 0; i < count; i += kLanes) {
          const V g = load_some(d, diff + i, std::min<int64_t>(kLanes, count - i));
          const Corners corners(strip, i);
          const V x = corners.mix(strip.slope_x, strip.weight_y, i);
          const V y = corners.mix(strip.weight_x, strip.slope_y, i);
          hn::Store(hn::MulAdd(g, x, hn::Load(d, to_x + i)), d, to_x + i);
          hn::Store(hn::MulAdd(g, y, hn::Load(d, to_y + i)), d, to_y + i);
        }
      }
      float* out = diff_grid + (n * s.points + begin) * 2;
      for (int64_t i = 0; i < count; i += kLanes) {
        store_points(hn::Load(d, to_x + i), hn::Load(d, to_y + i), count - i, out + 2 * i);
      }
    }
  }
}

void sample_images_backward_image(const BilinearSample& s, base::Range images, const float* grid, const float* diff_dst,
                                  float* diff_image) {
  Strip strip = {};
  const int64_t size = s.height * s.width;
  std::fill_n(diff_image + images.begin * s.channels * size, images.size() * s.channels * size, 0.0F);
  for (int64_t n = images.begin; n < images.end; ++n) {
    for (int64_t begin = 0; begin < s.points; begin += kStrip) {
      const int64_t count = std::min(kStrip, s.points - begin);
      locate(s, grid + (n * s.points + begin) * 2, count, strip);
      for (int64_t plane = n * s.channels; plane < (n + 1) * s.channels; ++plane) {
        const float* diff = diff_dst + plane * s.points + begin;
        for (int64_t i = 0; i < count; ++i) {
          float* corner = diff_image + plane * size + strip.corner[i];
          const float above = diff[i] * strip.weight_y[0][i];
          const float below = diff[i] * strip.weight_y[1][i];
          corner[0] += above * strip.weight_x[0][i];
          corner[1] += above * strip.weight_x[1][i];
          corner[s.width] += below * strip.weight_x[0][i];
          corner[s.width + 1] += below * strip.weight_x[1][i];
        }
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace lockstep::backend::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep::backend::cpu {
namespace {

HWY_EXPORT(grid_images);
HWY_EXPORT(grid_images_backward);
HWY_EXPORT(sample_images);
HWY_EXPORT(sample_images_backward_grid);
HWY_EXPORT(sample_images_backward_image);

/// Points for which one more thread pays off.
constexpr int64_t kGrain = 4'096;

void for_images(int64_t images, int64_t work, int threads, base::FunctionRef<void(base::Range)> body) {
  base::parallel(base::split_for(images * work, kGrain, threads),
                 [&](int thread, int count) { body(base::share(images, thread, count)); });
}

}  // namespace

void affine_grid(const AffineGrid& shape, const float* theta, float* grid, int threads) {
  for_images(shape.images, shape.height * shape.width, threads, [&](base::Range mine) {
    HWY_DYNAMIC_DISPATCH(grid_images)(shape, mine, theta, grid);
  });
}

void affine_grid_backward(const AffineGrid& shape, const float* diff_grid, float* diff_theta, int threads) {
  for_images(shape.images, shape.height * shape.width, threads, [&](base::Range mine) {
    HWY_DYNAMIC_DISPATCH(grid_images_backward)(shape, mine, diff_grid, diff_theta);
  });
}

void bilinear_sample(const BilinearSample& shape, const float* image, const float* grid, float* dst, int threads) {
  for_images(shape.images, shape.points * shape.channels, threads, [&](base::Range mine) {
    HWY_DYNAMIC_DISPATCH(sample_images)(shape, mine, image, grid, dst);
  });
}

void bilinear_sample_backward_image(const BilinearSample& shape, const float* grid, const float* diff_dst,
                                    float* diff_image, int threads) {
  for_images(shape.images, shape.points * shape.channels, threads, [&](base::Range mine) {
    HWY_DYNAMIC_DISPATCH(sample_images_backward_image)(shape, mine, grid, diff_dst, diff_image);
  });
}

void bilinear_sample_backward_grid(const BilinearSample& shape, const float* image, const float* grid,
                                   const float* diff_dst, float* diff_grid, int threads) {
  for_images(shape.images, shape.points * shape.channels, threads, [&](base::Range mine) {
    HWY_DYNAMIC_DISPATCH(sample_images_backward_grid)(shape, mine, image, grid, diff_dst, diff_grid);
  });
}

}  // namespace lockstep::backend::cpu
#endif  // HWY_ONCE
