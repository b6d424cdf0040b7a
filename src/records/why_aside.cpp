// Costs of evaluations and checkpoints. They are beside the steps, and their times were recorded.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "records/format.h"
#include "records/statistics.h"
#include "records/why_advice.h"
#include "records/why_facts.h"

namespace lockstep::records {
namespace {

/// Returns the share of the checkpoints that were written only because an evaluation was the best so far.
double written_for_best(const RunRecord& run) {
  const RoleRecord& chief = run.chief();
  const double best = sum(chief.evals.column("best"));
  const double every = run.number_setting("checkpoint_every");
  if (!known(every) || !known(best)) return 0;
  for (const PhaseTotals& phase : chief.phases) {
    if (phase.name != "checkpoint" || !(phase.count > 0)) continue;
    const double due = 1 + (every > 0 ? std::floor(run.steps() / every) : run.summary().number("epochs"));
    const double share = std::min(best, phase.count - due) / phase.count;
    return known(share) ? std::clamp(share, 0.0, 1.0) : 0;
  }
  return 0;
}

/// Steps after an evaluation lack what it used of a quota: they take longer than the model says, which was fitted to
/// steps that were not paused. Returns the seconds of a step.
double after_aside(const Fit& fit) {
  const predict::Node& node = fit.training.nodes[fit.training.workers.front().node];
  for (const predict::Worker& worker : fit.training.workers) {
    if (worker.work.pause > 0) return 0;
  }
  if (!(node.quota_period > 0)) return 0;
  const double most = (fit.evaluation + fit.checkpoint) * std::max(0.0, 1 / node.cores - 1);
  return std::clamp(fit.step - fit.prediction.step, 0.0, most);
}

}  // namespace

std::vector<Finding> aside_findings(const RunRecord& run, const RunFacts& facts, const Fit& fit) {
  std::vector<Finding> findings;
  const Advice advice(run, fit);
  const double both = fit.evaluation + fit.checkpoint;
  const double recorded = facts.workers.front().evaluation + facts.workers.front().checkpoint;
  const auto add = [&](const char* cause, const char* what, double seconds, const char* rarer) {
    const double cost = seconds * (1 + after_aside(fit) / both) / fit.whole();
    if (!(cost >= kLeastCost)) return;
    findings.push_back({.cause = {cause, "", cost, facts.step_seconds},
                        .measured = seconds / fit.whole(),
                        .headline = fmt::format("{} cost {} of the time, {} in all.", what, share_text(cost),
                                                time_text(recorded * seconds / both)),
                        .suggestions = advice.rarer(cost, rarer)});
  };
  const double best = written_for_best(run);
  add("evaluation", best > 0 ? "Evaluations, with checkpoints of the best ones," : "Evaluations",
      fit.evaluation + best * fit.checkpoint, "Evaluate half as often (--eval-every) or on less (--test-limit)");
  add("checkpoint", "Checkpoints", (1 - best) * fit.checkpoint, "Write checkpoints half as often (--checkpoint-every)");
  return findings;
}

}  // namespace lockstep::records
