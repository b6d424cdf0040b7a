// Makes a picture as large as a model's images. A free function, any thread.
#pragma once

#include <cstdint>

#include "data/dataset.h"

namespace lockstep::data {

/// How a picture of other proportions fits.
enum class Fit : uint8_t {
  pad,     ///< the whole picture, with black at two sides
  crop,    ///< its middle; parts at two sides are lost
  stretch  ///< the whole picture, out of proportion
};

/// Resizes the single picture of bytes to this height and width. Each new pixel is the mean of the old ones below it,
/// weighted by a triangle, as PIL's BILINEAR does; a picture of the right size keeps its bytes.
void resize(Examples& picture, int height, int width, Fit fit);

}  // namespace lockstep::data
