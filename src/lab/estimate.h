// How long a run may take: a guess from the model's arithmetic, the data's size, the cores and what a cluster adds.
// Its proportions are better than its size, which the lab corrects by the runs that it has made. For one thread.
#pragma once

#include <map>
#include <span>
#include <string>

#include "lab/experiment.h"
#include "lockstep/nn.h"

namespace lockstep::lab {

/// The roles of a run; one trainer where it is one process. Throws UsageError, IoError for a cluster file.
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
  /// `models` besides the zoo's; borrowed.
  explicit Estimator(std::span<const nn::ModelDef> models) : models_(models) {}

  /// Seconds from its start to its end.
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
