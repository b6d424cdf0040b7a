// Generated images for measuring speed: pixels N(0, 0.1), as float32, and uniformly random labels, all from a seed.
//
// Image i depends only on (seed, split, i). Either all images are made at the start (`fresh` false), or each is made
// when needed on the Loader's thread, so that memory does not grow with their number (4 bytes each for the label).
#pragma once

#include <cstdint>

#include "data/dataset.h"

namespace lockstep::data {

struct RandomImagesOptions {
  int64_t train = 1280;
  int64_t test = 256;
  int classes = 1000;
  ImageShape shape{3, 224, 224};
  bool fresh = true;
  uint64_t seed = 1;
};

/// Throws UsageError for invalid sizes.
Dataset random_images(const RandomImagesOptions& options = {});

}  // namespace lockstep::data
