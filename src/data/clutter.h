// Cluttered digits made from MNIST and a seed. Each digit lies at random on a larger black image, among five to eight
// small pieces cut at random from other digits. The brighter pixel wins where they overlap.
//
// Test examples come only from the test images. The last twelfth of the training images (5000 of MNIST's) makes the
// validation split, the others the training split, so that no digit is in two splits. Sample i of a split depends only
// on (seed, split, i).
#pragma once

#include <cstdint>

#include "data/dataset.h"

namespace lockstep::data {

struct ClutterOptions {
  int64_t train = 10000;
  int64_t validation = 1000;
  int64_t test = 1000;
  int side = 40;
  uint64_t seed = 1;
};

/// Makes the data set. `digits` has byte images with one channel, at least 5 pixels and at most `side` a side, and at
/// least 2 in each part drawn from; throws UsageError otherwise.
Dataset clutter(const Dataset& digits, const ClutterOptions& options = {});

}  // namespace lockstep::data
