#include "plan/goal.h"

#include <algorithm>
#include <cmath>

#include "records/statistics.h"

namespace lockstep::plan {

void add_run(const records::RunRecord& run, Goal& goal) {
  const std::string mode = run.summary().text("mode");
  if (mode == "async") return;
  const double workers = static_cast<double>(run.workers());
  const double batch = run.number_setting("batch");
  const double accumulate = std::max(1.0, run.number_setting("accumulate"));
  const double global = batch * workers * (records::known(accumulate) ? accumulate : 1);
  if (!(global > 0)) return;
  const records::CsvTable& evals = run.evals();
  const auto steps = evals.column("step");
  const auto values = evals.column(goal.field);
  for (size_t i = 0; i < std::min(steps.size(), values.size()); ++i) {
    const bool there = goal.field == "loss" ? values[i] <= goal.value : values[i] >= goal.value;
    if (!there || !(steps[i] > 0)) continue;
    const double examples = steps[i] * global;
    const auto found = std::lower_bound(goal.reached.begin(), goal.reached.end(), global,
                                        [](const Reached& a, double b) { return a.global_batch < b; });
    if (found != goal.reached.end() && found->global_batch == global) {
      found->examples = std::sqrt(found->examples * examples);
    } else {
      goal.reached.insert(found, {global, examples});
    }
    return;
  }
}

double examples_needed(const Goal& goal, double global_batch) {
  constexpr double kBeyond = 1.5;
  if (goal.reached.size() < 2 || !(global_batch > 0)) return records::kUnknown;
  const Reached& first = goal.reached.front();
  const Reached& last = goal.reached.back();
  if (global_batch < first.global_batch / kBeyond || global_batch > last.global_batch * kBeyond) {
    return records::kUnknown;
  }
  records::Curve curve;
  for (const Reached& reached : goal.reached) {
    curve.x.push_back(std::log(reached.global_batch));
    curve.y.push_back(std::log(reached.examples));
  }
  return std::exp(records::value_at(curve, std::log(global_batch)));
}

}  // namespace lockstep::plan
