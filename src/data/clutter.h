// Cluttered digits made from MNIST and a seed: each digit lies at random on a larger black image, among five to eight
// small pieces cut at random from other digits; where they meet, the brighter pixel stays.
//
// Test examples come from the test images only; the last twelfth of the training images (5000 of MNIST's) makes the
// validation split, the others the training split, so that no digit is in two splits. Sample i of a split depends on
// (seed, split, i) alone.
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

/// `digits` has images of bytes with one channel, at least 5 pixels and at most `side` a side, at least 2 in each part
/// that is drawn from; UsageError otherwise.
Dataset clutter(const Dataset& digits, const ClutterOptions& options = {});

}  // namespace lockstep::data
