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

/// Diagnoses a run of `lockstep guest`, or of logs: its config.yaml names a command.
Diagnosis of_other_program() {
  return {"unknown",
          "What limited this run is not known: another program made it.",
          {"Phases of steps are recorded only of Lockstep's own trainings. `lockstep show` has what the program used."},
          {},
          {}};
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

/// A cause that is not the training's own work comes first from this share of the time on. What was recorded is sure;
/// it comes first if it is worth saying.
constexpr double kWorthRemoving = 0.25;
/// The model fits a run if it explains all but this share.
constexpr double kFits = 0.1;

/// Returns whether a finding is to be named before another.
bool comes_before(const Finding& a, const Finding& b) {
  const auto rank = [](const Finding& finding) {
    const bool worth = finding.cause.cost >= kWorthRemoving || finding.measured >= kWorthSaying;
    return finding.cause.cost + (finding.removable && worth ? 1 : 0);
  };
  return rank(a) > rank(b);
}

/// Returns "Of 10.0 ms per step, computing took 6.0 ms (60 %), ..."; a step leaves out evaluations and checkpoints,
/// which are named behind it.
std::string where_time_went(const RunFacts& facts) {
  const Pace& all = facts.all;
  constexpr double kSmall = 0.01;
  const double step = all.seconds - all.aside();
  struct Part {
    const char* name;
    double seconds;
  };
  std::vector<Part> parts{{"computing", all.compute()},
                          {"exchanging gradients", all.exchange()},
                          {"waiting for other workers", all.others},
                          {"waiting for data", all.data},
                          {"everything else", all.rest}};
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.seconds > b.seconds; });
  const auto share = [&](double seconds) { return step > 0 ? seconds / step : 0; };
  std::string text;
  for (const Part& part : parts) {
    if (share(part.seconds) < kSmall) break;
    text += fmt::format("{}{} {}{} ({})", text.empty() ? "" : ", ", part.name, text.empty() ? "took " : "",
                        time_text(share(part.seconds) * facts.step_seconds), share_text(share(part.seconds)));
  }
  std::string besides;
  const Pace& chief = facts.workers.front();
  const double chief_step = chief.seconds - chief.aside();
  for (const Part& part : {Part{"evaluations", chief.evaluation}, Part{"checkpoints", chief.checkpoint}}) {
    const double beside = chief_step > 0 ? part.seconds / chief_step : 0;
    if (beside < kSmall) continue;
    besides += fmt::format("{}{} took another {}", besides.empty() ? "; " : ", ", part.name,
                           time_text(beside * facts.step_seconds));
  }
  return fmt::format("Of {} per {}, {}{}.", time_text(facts.step_seconds), facts.step, text, besides);
}

void say_unexplained(const RunFacts& facts, const Fit& fit, Diagnosis& diagnosis) {
  if (!(fit.unexplained > kFits)) return;
  const bool longer = fit.step > fit.prediction.step;
  const double by_model = facts.step_seconds * fit.prediction.step / fit.step;
  diagnosis.sentences.push_back(fmt::format(
      "The model of the run fits it badly: a step took {}, and by the model it takes {}. {} of it stay unexplained{}.",
      time_text(facts.step_seconds), time_text(by_model), share_text(fit.unexplained),
      longer ? ", such as threads that wait for a core or packets that were lost" : ""));
}

Diagnosis from_findings(std::vector<Finding> findings, const RunFacts& facts, const Fit& fit) {
  std::stable_sort(findings.begin(), findings.end(), comes_before);
  Diagnosis diagnosis{findings.front().cause.cause, findings.front().headline, {}, {}, {}};
  diagnosis.step = facts.step_seconds;
  diagnosis.aside = (fit.evaluation + fit.checkpoint) * facts.step_seconds / fit.step;
  diagnosis.unexplained = fit.unexplained;
  for (size_t i = 0; i < findings.size(); ++i) {
    Finding& finding = findings[i];
    diagnosis.causes.push_back(finding.cause);
    if (i >= kMostReasons || (i > 0 && finding.cause.cost < kWorthSaying)) continue;
    if (i > 0) diagnosis.sentences.push_back(finding.mention.empty() ? finding.headline : finding.mention);
    if (!finding.sentence.empty()) diagnosis.sentences.push_back(finding.sentence);
    if (i == 0) diagnosis.sentences.push_back(where_time_went(facts));
    for (Evidence& evidence : finding.evidence) diagnosis.evidence.push_back(std::move(evidence));
    if (i > 1 || (i == 1 && finding.cause.cost < kWorthRemoving)) continue;
    for (std::string& text : finding.suggestions) diagnosis.suggestions.push_back(std::move(text));
  }
  say_unexplained(facts, fit, diagnosis);
  return diagnosis;
}

/// Diagnoses a run that the model cannot be fitted to.
Diagnosis without_model(const RunFacts& facts, std::vector<Finding> findings, const Fit& fit) {
  Diagnosis diagnosis{"unknown", "What limited this run is not known.", {}, {}, {}};
  if (!findings.empty()) {
    std::stable_sort(findings.begin(), findings.end(), comes_before);
    diagnosis.cause = findings.front().cause.cause;
    diagnosis.headline = findings.front().headline;
    diagnosis.suggestions = findings.front().suggestions;
    diagnosis.evidence = findings.front().evidence;
    if (!findings.front().sentence.empty()) diagnosis.sentences.push_back(findings.front().sentence);
  }
  diagnosis.sentences.push_back(
      fmt::format("The model cannot be fitted to its {} steps: {}.", count_text(facts.all.steps), fit.missing));
  diagnosis.sentences.push_back(where_time_went(facts));
  return diagnosis;
}

}  // namespace

std::string gain_text(double before, double after) {
  return after > 0 ? fmt::format("{:.2g} times as fast", std::min(before / after, 1e3)) : "faster";
}

Diagnosis diagnose(const RunRecord& run) {
  const RunFacts facts = facts_of(run);
  const double steps = known(run.steps()) ? run.steps() : 0;
  Diagnosis diagnosis;
  if (!run.setting("command").empty()) {
    diagnosis = of_other_program();
  } else if (std::max(steps, facts.all.steps) < kEnoughSteps) {
    diagnosis = too_short(steps, known(run.seconds()) ? run.seconds() : 0);
  } else if (facts.workers.empty()) {
    diagnosis = without_phases(run);
  } else {
    const Fit model = fit(run);
    std::vector<Finding> findings = machine_findings(run, facts);
    if (model.there()) {
      for (Finding& finding : model_findings(run, facts, model)) findings.push_back(std::move(finding));
    }
    diagnosis = model.there() ? from_findings(std::move(findings), facts, model)
                              : without_model(facts, std::move(findings), model);
  }
  for (std::string& text : remarks(run)) diagnosis.sentences.push_back(std::move(text));
  return diagnosis;
}

}  // namespace lockstep::records
