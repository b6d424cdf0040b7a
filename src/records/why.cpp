#include "records/why.h"

#include <fmt/format.h>

#include <algorithm>

#include "records/format.h"
#include "records/why_facts.h"

namespace lockstep::records {
namespace {

/// Fewer steps are mostly start-up.
constexpr double kEnoughSteps = 30;
/// A cause that explains a smaller share of the time is not mentioned.
constexpr double kWorthSaying = 0.1;
constexpr size_t kMostReasons = 4;

Diagnosis too_short(double steps, double seconds) {
  return {"short",
          fmt::format("Too short to tell: {} steps.", count_text(steps)),
          {fmt::format("The run made {} steps in {}; a diagnosis needs at least {}.", count_text(steps),
                       time_text(seconds), count_text(kEnoughSteps))},
          {},
          {"Train for longer and ask again."}};
}

/// Uses the workers' waiting times in summaries of older versions.
void say_waits(const RunRecord& run, Diagnosis& diagnosis) {
  std::vector<double> waits;
  std::vector<std::string> texts;
  for (const WorkerRow& row : run.summary().workers) {
    if (!known(row.wait_share)) continue;
    waits.push_back(row.wait_share);
    texts.push_back(fmt::format("{} {}", row.role, share_text(row.wait_share)));
    diagnosis.evidence.push_back(share_evidence(row.role + ", waited", row.wait_share));
  }
  if (waits.empty()) return;
  std::string list;
  for (const std::string& text : texts) list += (list.empty() ? "" : ", ") + text;
  const double average = mean(waits);
  diagnosis.cause = average >= 0.5 ? "waiting" : "compute";
  diagnosis.headline = average >= 0.5 ? "Waiting for parameters or other workers limited this run."
                                      : "The workers' own work limited this run.";
  diagnosis.sentences.push_back(
      fmt::format("Workers waited {} of their time for parameters or for each other ({}).", share_text(average), list));
  const SlowOne slow = slow_one(run, facts_of(run));
  if (slow.role.empty()) return;
  diagnosis.sentences.push_back(fmt::format("{} {} {} as long as the others: {} against {} per step.", slow.role,
                                            slow.data ? "waits for data and takes" : "computes",
                                            times_text(slow.factor), time_text(slow.own), time_text(slow.others)));
  // A straggler does not wait itself.
  const WorkerRow* row = run.worker(slow.role);
  if (row != nullptr && average >= 0.2 && row->wait_share < average / 2) {
    diagnosis.cause = "others";
    diagnosis.headline = fmt::format("Waiting for {} limited this run.", slow.role);
  }
}

/// Diagnoses a run without phases: an older one, or one killed before the first line.
Diagnosis without_phases(const RunRecord& run) {
  Diagnosis diagnosis{"unknown", "The run did not record where the time of its steps went.", {}, {}, {}};
  say_waits(run, diagnosis);
  const double aside = run.summary().number("aside_seconds") / run.summary().number("seconds");
  if (known(aside)) {
    diagnosis.sentences.push_back(
        fmt::format("Evaluations and checkpoints took {} of {}.", share_text(aside), time_text(run.seconds())));
    diagnosis.evidence.push_back(share_evidence("evaluations and checkpoints", aside));
    if (aside >= 0.5) {
      diagnosis.cause = "aside";
      diagnosis.headline = "Evaluations and checkpoints limited this run.";
    }
  }
  diagnosis.sentences.push_back(
      fmt::format("phases.csv has no phases of its {} steps: an older version made the run, "
                  "or it ended before the first line was written.",
                  count_text(run.steps())));
  diagnosis.suggestions.emplace_back("Train again with this version to see more.");
  for (const std::string& line : run.summary().stragglers) diagnosis.evidence.push_back({line, kUnknown, ""});
  return diagnosis;
}

void take(Finding& finding, Diagnosis& diagnosis) {
  diagnosis.sentences.push_back(std::move(finding.sentence));
  for (Evidence& evidence : finding.evidence) diagnosis.evidence.push_back(std::move(evidence));
}

Diagnosis from_findings(std::vector<Finding> findings) {
  std::stable_sort(findings.begin(), findings.end(),
                   [](const Finding& a, const Finding& b) { return a.weight > b.weight; });
  Diagnosis diagnosis{findings.front().cause, findings.front().headline, {}, {}, findings.front().suggestions};
  for (size_t i = 0; i < findings.size() && i < kMostReasons; ++i) {
    if (i > 0 && findings[i].weight < kWorthSaying) break;
    if (i == 1) {
      diagnosis.suggestions.insert(diagnosis.suggestions.end(), findings[i].suggestions.begin(),
                                   findings[i].suggestions.end());
    }
    take(findings[i], diagnosis);
  }
  return diagnosis;
}

}  // namespace

Diagnosis diagnose(const RunRecord& run) {
  const RunFacts facts = facts_of(run);
  const double steps = known(run.steps()) ? run.steps() : 0;
  Diagnosis diagnosis;
  if (std::max(steps, facts.all.steps) < kEnoughSteps) {
    diagnosis = too_short(steps, known(run.seconds()) ? run.seconds() : 0);
  } else if (facts.workers.empty()) {
    diagnosis = without_phases(run);
  } else {
    std::vector<Finding> findings = time_findings(run, facts);
    for (Finding& finding : machine_findings(run, facts)) {
      findings.push_back(std::move(finding));
    }
    diagnosis = from_findings(std::move(findings));
  }
  for (std::string& text : remarks(run)) diagnosis.sentences.push_back(std::move(text));
  return diagnosis;
}

}  // namespace lockstep::records
