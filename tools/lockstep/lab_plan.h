// The plan of an experiment, for `lockstep lab run --dry-run`.
#pragma once

#include <string>
#include <vector>

#include "lab/experiment.h"

namespace lockstep::tools {

struct PlannedRun {
  const lab::RunPlan* plan = nullptr;
  double seconds = 0;  ///< estimated
  bool done = false;   ///< finished earlier
};

void print_plan(const lab::Experiment& experiment, const std::vector<PlannedRun>& runs);
std::string plan_json(const lab::Experiment& experiment, const std::vector<PlannedRun>& runs);

}  // namespace lockstep::tools
