// Pixels with mean 0 and variance 1: for each pixel of an image what to take off and what to multiply by, over a set of
// examples. A plain value; the Loader borrows one and applies it, pictures undo it.
#pragma once

#include <span>
#include <vector>

#include "data/dataset.h"

namespace lockstep::data {

struct PixelScaling {
  std::vector<float> mean;               ///< one per value of an image
  std::vector<float> inverse_deviation;  ///< 0 where the pixel never changes: it becomes 0

  [[nodiscard]] bool empty() const { return mean.empty(); }

  /// (x - mean) * inverse_deviation over one or more images, in place.
  void apply(std::span<float> pixels) const;
  /// The way back; pixels that never changed get their mean.
  void undo(std::span<float> pixels) const;
};

/// Over what a pass sees, bytes as 0..1, with the population's variance, summed in double. UsageError when there is
/// nothing.
PixelScaling standardise(const Examples& examples);

}  // namespace lockstep::data
