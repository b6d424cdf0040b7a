// lockstep lab run.
#include "lab/estimate.h"
#include "lab_commands.h"
#include "lab_plan.h"
#include "lockstep/error.h"

namespace lockstep::tools {

int lab_run(const LabRunArguments& arguments, const Invocation& invocation) {
  const lab::Experiment experiment =
      lab::load_experiment(arguments.file, arguments.scale, {.models = invocation.models});
  lab::Estimator estimator(invocation.models);
  std::vector<PlannedRun> runs;
  for (const lab::RunPlan* plan : chosen_runs(experiment, arguments.only)) {
    runs.push_back({plan, estimator.seconds(*plan), false});
  }
  if (!arguments.dry_run) throw UsageError("lab run: only --dry-run works yet");
  if (arguments.json) {
    write_out(plan_json(experiment, runs));
  } else {
    print_plan(experiment, runs);
  }
  return 0;
}

}  // namespace lockstep::tools
