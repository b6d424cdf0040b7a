#include "backend/cpu/kernels/unfold.h"

#include <algorithm>

#include "base/parallel.h"

namespace lockstep::backend::cpu {
namespace {

/// Returns the positions i of the unfolded axis whose source stride * i + offset lies inside [0, size).
base::Range inside(const UnfoldedAxis& axis, int64_t offset) {
  const int64_t begin = offset >= 0 ? 0 : (-offset + axis.stride - 1) / axis.stride;
  const int64_t end = (axis.size - offset + axis.stride - 1) / axis.stride;
  return {std::clamp<int64_t>(begin, 0, axis.unfolded), std::clamp<int64_t>(end, 0, axis.unfolded)};
}

/// Copies one row of one block of channels that are also adjacent in the source.
void unfold_blocked_row(const Unfold& u, const float* src_row, int64_t offset, float* dst) {
  const int64_t b = u.block;
  const base::Range valid = inside(u.w, offset);
  std::fill_n(dst, valid.begin * b, 0.0F);
  if (u.w.stride == 1) {
    const float* from = src_row + (valid.begin + offset) * b;
    std::copy_n(from, std::max<int64_t>(valid.size(), 0) * b, dst + valid.begin * b);
  } else {
    for (int64_t x = valid.begin; x < valid.end; ++x) {
      std::copy_n(src_row + (u.w.stride * x + offset) * b, b, dst + x * b);
    }
  }
  std::fill(dst + std::max(valid.begin, valid.end) * b, dst + u.w.unfolded * b, 0.0F);
}

void unfold_blocked(const Unfold& u, const float* image, int64_t block, float* dst) {
  const int64_t source_blocks = u.channels / u.block;
  const int64_t group = block / source_blocks;
  const float* src = image + block % source_blocks * u.h.size * u.w.size * u.block;
  const int64_t offset_h = group / u.w.groups * u.h.step - u.h.padding;
  const int64_t offset_w = group % u.w.groups * u.w.step - u.w.padding;
  const int64_t row = u.w.unfolded * u.block;
  for (int64_t y = 0; y < u.h.unfolded; ++y) {
    const int64_t sy = u.h.stride * y + offset_h;
    if (sy < 0 || sy >= u.h.size) {
      std::fill_n(dst + y * row, row, 0.0F);
    } else {
      unfold_blocked_row(u, src + sy * u.w.size * u.block, offset_w, dst + y * row);
    }
  }
}

/// Copies the lanes of one block that come from one row of the source: groups [first, first + count) of the width.
void unfold_plain_run(const Unfold& u, const float* src_row, int64_t first, int64_t count, float* dst) {
  const int64_t offset = first * u.w.step - u.w.padding;
  for (int64_t x = 0; x < u.w.unfolded; ++x) {
    const int64_t sx = u.w.stride * x + offset;
    float* to = dst + x * u.block;
    if (u.w.step == 1 && count == 4 && sx >= 0 && sx + 4 <= u.w.size) {
      std::copy_n(src_row + sx, 4, to);
      continue;
    }
    for (int64_t g = 0; g < count; ++g) {
      const int64_t at = sx + g * u.w.step;
      to[g] = at >= 0 && at < u.w.size ? src_row[at] : 0.0F;
    }
  }
}

void unfold_plain(const Unfold& u, const float* image, int64_t block, float* dst) {
  const int64_t row = u.w.unfolded * u.block;
  std::fill_n(dst, u.h.unfolded * row, 0.0F);
  const int64_t last = std::min((block + 1) * u.block, u.unfolded_channels());
  for (int64_t channel = block * u.block; channel < last;) {
    const int64_t gw = channel % u.w.groups;
    const int64_t gh = channel / u.w.groups % u.h.groups;
    const float* src = image + channel / u.groups() * u.h.size * u.w.size;
    const int64_t count = std::min(u.w.groups - gw, last - channel);
    for (int64_t y = 0; y < u.h.unfolded; ++y) {
      const int64_t sy = u.h.stride * y + gh * u.h.step - u.h.padding;
      if (sy < 0 || sy >= u.h.size) continue;
      unfold_plain_run(u, src + sy * u.w.size, gw, count, dst + y * row + channel % u.block);
    }
    channel += count;
  }
}

/// Folds one block of channels of one image: each pixel sums its copies from all groups.
void fold_block(const Unfold& u, const float* image, int64_t block, float* dst) {
  const int64_t b = u.block;
  const int64_t plane = u.h.unfolded * u.w.unfolded * b;
  const int64_t source_blocks = u.channels / u.block;
  std::fill_n(dst, u.h.size * u.w.size * b, 0.0F);
  for (int64_t group = 0; group < u.groups(); ++group) {
    const float* src = image + (group * source_blocks + block) * plane;
    const int64_t offset_h = group / u.w.groups * u.h.step - u.h.padding;
    const int64_t offset_w = group % u.w.groups * u.w.step - u.w.padding;
    const base::Range rows = inside(u.h, offset_h);
    const base::Range columns = inside(u.w, offset_w);
    for (int64_t y = rows.begin; y < rows.end; ++y) {
      const float* from = src + (y * u.w.unfolded + columns.begin) * b;
      float* to = dst + ((y + offset_h) * u.w.size + columns.begin + offset_w) * b;
      for (int64_t i = 0; i < columns.size() * b; ++i) to[i] += from[i];
    }
  }
}

/// Calls body(index of the weight, index of the unfolded weight) for every weight.
template <class Body>
void for_each_weight(const Unfold& u, int64_t out_channels, Body body) {
  int64_t at = 0;
  const auto split = [](const UnfoldedAxis& axis, int64_t tap) {
    const int64_t group = axis.step == 1 ? tap % axis.groups : (axis.step == 0 ? 0 : tap / axis.step);
    return std::pair{group, (tap - group * axis.step) / axis.stride};
  };
  for (int64_t o = 0; o < out_channels; ++o) {
    for (int64_t c = 0; c < u.channels; ++c) {
      for (int64_t y = 0; y < u.h.kernel; ++y) {
        const auto [gh, jh] = split(u.h, y);
        for (int64_t x = 0; x < u.w.kernel; ++x) {
          const auto [gw, jw] = split(u.w, x);
          body(at++, ((o * u.unfolded_channels() + u.channel(c, gh, gw)) * u.h.taps + jh) * u.w.taps + jw);
        }
      }
    }
  }
}

}  // namespace

UnfoldedAxis unfolded_axis(int64_t size, int64_t kernel, int64_t stride, int64_t padding, int64_t results) {
  constexpr int64_t kTaps = 3;
  UnfoldedAxis axis{size, kernel, stride, padding};
  axis.taps = kernel;
  if (stride > 1) {
    axis.groups = stride;
    axis.step = 1;
    axis.taps = (kernel + stride - 1) / stride;
  } else if (kernel > kTaps && kernel <= 2 * kTaps) {
    axis.groups = 2;
    axis.step = kTaps;
    axis.taps = kTaps;
  }
  axis.unfolded = results + axis.taps - 1;
  return axis;
}

void unfold(const Unfold& u, int64_t images, const float* src, float* dst, int threads) {
  const int64_t plane = u.h.unfolded * u.w.unfolded * u.block;
  base::parallel({threads, threads}, [&](int part, int parts) {
    const base::Range mine = base::share(images * u.blocks(), part, parts);
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      const float* image = src + i / u.blocks() * u.image_size();
      (u.plain_source ? unfold_plain : unfold_blocked)(u, image, i % u.blocks(), dst + i * plane);
    }
  });
}

void fold(const Unfold& u, int64_t images, const float* src, float* dst, int threads) {
  const int64_t blocks = u.channels / u.block;
  const int64_t plane = u.h.size * u.w.size * u.block;
  base::parallel({threads, threads}, [&](int part, int parts) {
    const base::Range mine = base::share(images * blocks, part, parts);
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      fold_block(u, src + i / blocks * u.unfolded_size(), i % blocks, dst + i * plane);
    }
  });
}

void unfold_weights(const Unfold& u, int64_t out_channels, const float* src, float* dst) {
  std::fill_n(dst, out_channels * u.unfolded_channels() * u.h.taps * u.w.taps, 0.0F);
  for_each_weight(u, out_channels, [&](int64_t plain, int64_t unfolded) { dst[unfolded] = src[plain]; });
}

void fold_weights(const Unfold& u, int64_t out_channels, const float* src, float* dst) {
  for_each_weight(u, out_channels, [&](int64_t plain, int64_t unfolded) { dst[plain] = src[unfolded]; });
}

}  // namespace lockstep::backend::cpu
