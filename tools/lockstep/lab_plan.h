// The plan of an experiment, as `lockstep lab run --dry-run` shows it.
#pragma once

#include <string>
#include <vector>

#include "lab/experiment.h"

namespace lockstep::tools {

struct PlannedRun {
  const lab::RunPlan* plan = nullptr;
  double seconds = 0;  ///< about how long
  bool done = false;   ///< already
};

void print_plan(const lab::Experiment& experiment, const std::vector<PlannedRun>& runs);
std::string plan_json(const lab::Experiment& experiment, const std::vector<PlannedRun>& runs);

}  // namespace lockstep::tools
