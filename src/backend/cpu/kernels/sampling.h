// Sampling grids and bilinear interpolation over plain images [N, C, H, W] and grids [N, points, 2] of (x, y). Threads
// split the images, so each sum is made by one thread in one order.
#pragma once

#include <cstdint>

namespace lockstep::backend::cpu {

/// Coordinates of the columns and rows of the grid to make.
struct AffineGrid {
  int64_t images = 0;
  int64_t height = 0;
  int64_t width = 0;
  const float* columns = nullptr;
  const float* rows = nullptr;
};

/// theta is [N, 6], grid [N, height, width, 2].
void affine_grid(const AffineGrid& shape, const float* theta, float* grid, int threads);
void affine_grid_backward(const AffineGrid& shape, const float* diff_grid, float* diff_theta, int threads);

/// Maps a coordinate x to pixel (x + 1) * scale - shift along its axis. With `clipped`, points whose four neighbours
/// are not all inside give zero; otherwise zeros surround the image. Width and height are at least 2.
struct BilinearSample {
  int64_t images = 0;
  int64_t channels = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t points = 0;
  float scale_x = 0;
  float scale_y = 0;
  float shift = 0;
  bool clipped = false;
};

void bilinear_sample(const BilinearSample& shape, const float* image, const float* grid, float* dst, int threads);
void bilinear_sample_backward_image(const BilinearSample& shape, const float* grid, const float* diff_dst,
                                    float* diff_image, int threads);
void bilinear_sample_backward_grid(const BilinearSample& shape, const float* image, const float* grid,
                                   const float* diff_dst, float* diff_grid, int threads);

}  // namespace lockstep::backend::cpu
