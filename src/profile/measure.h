// Measures a machine for plans: computing a model's step, memory, and messages between two threads over loopback. The
// results are medians, so that a short disturbance does not count. Free functions; each uses the machine for about the
// given seconds and must not run beside another.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/nn.h"
#include "plan/profile.h"
#include "settings/settings.h"

namespace lockstep::profile {

struct ComputeRequest {
  const nn::ModelDef* model = nullptr;
  settings::Options options = {};
  Shape image = {};     ///< an image of the data; empty: the model's
  int64_t classes = 0;  ///< classes of the data; 0: the model's
  std::vector<int64_t> batches = {};
  std::vector<int> threads = {};
  double seconds = 5;  ///< for all batches and threads together, besides making the programs
};

/// Computes steps on random data.
plan::ModelProfile measure_model(const ComputeRequest& request);

/// Sets memory and link rates and the costs of messages and bytes.
void measure_machine(plan::Profile& profile, double seconds);

}  // namespace lockstep::profile
