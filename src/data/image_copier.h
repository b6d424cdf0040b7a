// ImageCopier: copies single images of a split as scaled float32, from any source (bytes, floats or a maker). Borrows
// the examples; allocates only when constructed. Any thread may call a const one.
#pragma once

#include <cstddef>
#include <vector>

#include "data/pixel_scaling.h"

namespace lockstep::data {

class ImageCopier {
 public:
  /// `byte_scale` applies to bytes only; `pixels` (may be nullptr or empty) then applies to all images.
  ImageCopier(const Examples& examples, float byte_scale, const PixelScaling* pixels);

  /// Copies the stored example `index`.
  void copy(size_t index, float* image) const;
  void prefetch(size_t index) const;

 private:
  const Examples& examples_;
  const size_t pixels_;
  const float byte_scale_;
  std::vector<float> factors_;  ///< one per pixel if pixels are scaled; else empty
  std::vector<float> offsets_;
};

}  // namespace lockstep::data
