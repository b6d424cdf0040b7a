// A small data set made from a seed: each class is a blurred prototype, each example a shifted, noisy copy of one. Easy
// to learn (a linear model passes 90 %). Needs no file. The same options give the same bytes everywhere.
#pragma once

#include <cstdint>

#include "data/dataset.h"

namespace lockstep::data {

struct SyntheticOptions {
  int64_t train = 10000;
  int64_t test = 2000;
  int classes = 10;
  ImageShape shape{1, 28, 28};
  float noise = 0.25F;  ///< standard deviation of the pixels' noise, on a scale of 0..1
  uint64_t seed = 1;
};

Dataset synthetic(const SyntheticOptions& options = {});

}  // namespace lockstep::data
