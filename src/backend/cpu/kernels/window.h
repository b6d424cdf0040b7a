// A window that slides over an image, shared by convolutions and pools.
#pragma once

#include <cstdint>

namespace lockstep::backend::cpu {

struct Window2d {
  int64_t kernel_height = 1;
  int64_t kernel_width = 1;
  int64_t stride_height = 1;
  int64_t stride_width = 1;
  int64_t pad_top = 0;
  int64_t pad_left = 0;
  int64_t pad_bottom = 0;
  int64_t pad_right = 0;

  [[nodiscard]] int64_t out_height(int64_t in_height) const {
    return (in_height + pad_top + pad_bottom - kernel_height) / stride_height + 1;
  }
  [[nodiscard]] int64_t out_width(int64_t in_width) const {
    return (in_width + pad_left + pad_right - kernel_width) / stride_width + 1;
  }
};

}  // namespace lockstep::backend::cpu
