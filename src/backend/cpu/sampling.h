// The coordinates of graph::Sampling in single precision: one definition for all kernels, so that they find the same
// pixels.
#pragma once

#include "lockstep/graph.h"

namespace lockstep::backend::cpu {

/// Returns the coordinate of cell i of `size`.
inline float grid_coordinate(graph::Sampling sampling, int64_t i, int64_t size) {
  if (sampling == graph::Sampling::half_pixel) {
    return static_cast<float>((2.0 * static_cast<double>(i) + 1.0) / static_cast<double>(size) - 1.0);
  }
  if (size == 1) return -1.0F;
  return static_cast<float>(2.0 * static_cast<double>(i) / static_cast<double>(size - 1) - 1.0);
}

/// Maps coordinate x to pixel (x + 1) * scale - shift.
struct PixelScale {
  float scale = 0;
  float shift = 0;

  [[nodiscard]] float at(float x) const { return (x + 1.0F) * scale - shift; }
};

inline PixelScale pixel_scale(graph::Sampling sampling, int64_t size) {
  return {static_cast<float>(size) / 2.0F, sampling == graph::Sampling::half_pixel ? 0.5F : 0.0F};
}

}  // namespace lockstep::backend::cpu
