// Estimates the time of a run from the model's arithmetic, the data's size, the cores and the cost of a cluster.
// Proportions between runs are more reliable than absolute times; the lab corrects the latter by finished runs. For one
// thread.
#pragma once

#include <map>
#include <span>
#include <string>

#include "lab/experiment.h"
#include "lockstep/nn.h"

namespace lockstep::lab {

/// The roles of a run; one trainer if it is one process. Throws UsageError, IoError for a cluster file.
struct Roles {
  size_t trainers = 1;
  size_t servers = 0;
  size_t others = 0;
  bool cluster = false;
  bool all_reduce = false;
};
Roles roles_of(const RunPlan& plan);

class Estimator {
 public:
  /// `models` are known besides the zoo's; borrowed.
  explicit Estimator(std::span<const nn::ModelDef> models) : models_(models) {}

  /// Returns the seconds from the run's start to its end.
  double seconds(const RunPlan& plan);

 private:
  struct Cost {
    double flops = 0;  ///< per example, forward and backward
    double parameter_bytes = 0;
  };
  Cost cost_of(const RunPlan& plan);

  std::span<const nn::ModelDef> models_;
  std::map<std::string, Cost> costs_;  ///< by model and options
};

}  // namespace lockstep::lab
