// ImageCopier: single images of a split as float32, scaled, wherever they come from (bytes, floats or a maker). Borrows
// the examples; allocates only when constructed. Any thread may call a const one.
#pragma once

#include <cstddef>
#include <vector>

#include "data/pixel_scaling.h"

namespace lockstep::data {

class ImageCopier {
 public:
  /// `byte_scale` is for bytes only; `pixels` (may be nullptr or empty) then for all.
  ImageCopier(const Examples& examples, float byte_scale, const PixelScaling* pixels);

  /// `index` is of the stored examples.
  void copy(size_t index, float* image) const;
  void prefetch(size_t index) const;

 private:
  const Examples& examples_;
  const size_t pixels_;
  const float byte_scale_;
  std::vector<float> factors_;  ///< of each pixel, where pixels are scaled; else empty
  std::vector<float> offsets_;
};

}  // namespace lockstep::data
