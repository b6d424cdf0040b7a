// Scales pixels to mean 0 and variance 1: for each pixel of an image, an offset and a factor computed over a set of
// examples. A plain value. The Loader borrows one and applies it; pictures undo it.
#pragma once

#include <span>
#include <vector>

#include "data/dataset.h"

namespace lockstep::data {

struct PixelScaling {
  std::vector<float> mean;               ///< one per value of an image
  std::vector<float> inverse_deviation;  ///< 0 if the pixel never changes: it becomes 0

  [[nodiscard]] bool empty() const { return mean.empty(); }

  /// Computes (x - mean) * inverse_deviation over one or more images, in place.
  void apply(std::span<float> pixels) const;
  /// Inverse of apply; pixels that never changed get their mean.
  void undo(std::span<float> pixels) const;
};

/// Computes the scaling over the examples of a pass, bytes as 0..1, with the population's variance, summed in double.
/// Throws UsageError if there are none.
PixelScaling standardise(const Examples& examples);

}  // namespace lockstep::data
