#include "report/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "records/statistics.h"
#include "records/why.h"
#include "report/checks.h"
#include "report/figures.h"

namespace lockstep::report {
namespace {

/// Combines the tests of a finding. It holds only if all of them do: an undecided one leaves it undecided, and so does
/// one that lacks runs.
Verdict together(const std::vector<Checked>& tests) {
  std::vector<Verdict> verdicts;
  for (const Checked& test : tests) verdicts.push_back(test.verdict);
  const Verdict verdict = verdict_of(verdicts);
  if (verdict != Verdict::holds) return verdict;
  const auto any = [&](const auto& is) { return std::any_of(tests.begin(), tests.end(), is); };
  if (any([](const Checked& test) { return test.verdict == Verdict::noise; })) return Verdict::noise;
  return any([](const Checked& test) { return test.verdict == Verdict::unjudged && test.too_few; }) ? Verdict::unjudged
                                                                                                    : Verdict::holds;
}

/// Returns the mean of a field on a side; NaN for a figure of whole runs in a test of workers: both sides would be
/// equal.
double mean_of(const Side& side, const std::string& field) {
  std::vector<double> values;
  for (const Observation& member : side.members) values.push_back(member.number(field));
  return records::mean(values);
}

/// Returns "Computing: 62 % with nodes 3; 91 % with nodes 1."
std::string explaining(const std::string& field, const Checked& test) {
  std::string text;
  for (const Side& side : test.sides) {
    const double value = mean_of(side, field);
    if (!records::known(value)) continue;
    if (!text.empty()) text += "; ";
    text += figure_text(value, unit_of(field));
    if (test.sides.size() > 1) text += " with " + side.name;
  }
  if (text.empty()) return "";
  const std::string where = test.failing_alone ? " where it does not hold" : "";
  return capital(field_title(field)) + where + ": " + text + ".";
}

/// Returns whether what limited the runs bears on the field: on times, rates and loads, not on losses or counted bytes.
bool bears_on(const std::string& field) {
  const lab::FieldDef* def = lab::find_field(field);
  return def != nullptr && def->varies == lab::Varies::time && def->unit != lab::Unit::bytes;
}

/// Adds what limited one run of each side, unless it is the same on all sides and so explains no difference.
void add_limits(const std::vector<Side>& sides, RunFolders& folders, std::vector<std::string>& reasons) {
  Observations all;
  for (const Side& side : sides) all.insert(all.end(), side.members.begin(), side.members.end());
  const bool with_group = several_groups(all);
  std::vector<std::string> limits;
  std::set<std::string> headlines;
  for (const Side& side : sides) {
    for (const Observation& member : side.members) {
      const records::RunRecord* record = folders.record(*member.run);
      if (record == nullptr) continue;
      const records::Diagnosis diagnosis = records::diagnose(*record);
      if (diagnosis.cause == "unknown" || diagnosis.cause == "short" || diagnosis.headline.empty()) break;
      std::string reason = fmt::format("{}: {}", title_of(*member.run, with_group), diagnosis.headline);
      if (std::find(limits.begin(), limits.end(), reason) == limits.end()) limits.push_back(std::move(reason));
      headlines.insert(diagnosis.headline);
      break;
    }
  }
  if (limits.size() > 1 && headlines.size() == 1) return;
  reasons.insert(reasons.end(), limits.begin(), limits.end());
}

/// Marks tests that could not be judged: the verdict is based on the others.
void say_what_is_passed_over(const std::vector<Checked>& tests, Finding& finding) {
  if (finding.verdict == Verdict::unjudged) return;
  for (size_t i = 0; i < tests.size(); ++i) {
    if (tests[i].verdict != Verdict::unjudged) continue;
    std::string& sentence = finding.sentences[i];
    if (sentence.ends_with('.')) sentence.pop_back();
    sentence += ", and does not count in the verdict.";
  }
}

/// Returns the runs of a finding's tests, each once.
Observations tested_runs(const Material& material, const lab::FindingSpec& spec) {
  Observations all;
  for (const Observation& o : material.observations({})) {
    const bool tested = std::any_of(spec.tests.begin(), spec.tests.end(), [&](const lab::FindingTest& test) {
      const bool pair =
          test.kind == lab::TestKind::compare || test.kind == lab::TestKind::ratio || test.kind == lab::TestKind::curve;
      return lab::passes(*o.run, test.first) || (pair && lab::passes(*o.run, test.second));
    });
    if (tested) all.push_back(o);
  }
  return all;
}

Fields tested_fields(const lab::FindingSpec& spec) {
  Fields fields;
  for (const lab::FindingTest& test : spec.tests) fields.push_back(test.field);
  return fields;
}

/// Returns the test whose reasons a reader wants: the first that does not hold, otherwise the first with a known
/// result.
const Checked* telling(const std::vector<Checked>& tests) {
  for (const Verdict wanted : {Verdict::fails, Verdict::partly, Verdict::noise, Verdict::holds, Verdict::unjudged}) {
    for (const Checked& test : tests) {
      if (test.verdict == wanted && !test.sides.empty()) return &test;
    }
  }
  return nullptr;
}

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::holds:
      return "holds";
    case Verdict::partly:
      return "holds in part";
    case Verdict::fails:
      return "does not hold";
    case Verdict::noise:
      return "within noise";
    case Verdict::unjudged:
      break;
  }
  return "not judged";
}

bool passes_over_cases(const Finding& finding) {
  const bool undecided = finding.verdict == Verdict::noise || finding.verdict == Verdict::unjudged;
  return !undecided && finding.decided < finding.cases;
}

std::string verdict_text(const Finding& finding) {
  if (!passes_over_cases(finding)) return std::string(name(finding.verdict));
  return fmt::format("{} ({} of {} cases decided)", name(finding.verdict), finding.decided, finding.cases);
}

std::vector<Finding> check_findings(const Material& material, RunFolders& folders) {
  std::vector<Finding> findings;
  for (const lab::FindingSpec& spec : material.results().experiment.report.findings) {
    Finding finding{&spec, Verdict::unjudged, {}, {}};
    std::vector<Checked> tests;
    for (const lab::FindingTest& test : spec.tests) {
      tests.push_back(check(material, folders, test));
      // Runs that failed or are not made yet may still refute the claim.
      Checked& checked = tests.back();
      const bool missing = material.missing(test.first) > 0 || material.missing(test.second) > 0;
      if (checked.verdict == Verdict::unjudged && missing) checked.too_few = true;
      finding.sentences.push_back(checked.sentence);
      finding.cases += checked.cases;
      finding.decided += checked.decided;
    }
    finding.verdict = spec.not_judged.empty() ? together(tests) : Verdict::unjudged;
    if (!spec.not_judged.empty()) finding.sentences.push_back("Not judged here: " + spec.not_judged);
    say_what_is_passed_over(tests, finding);
    if (std::string note = disturbed_note(tested_runs(material, spec), tested_fields(spec)); !note.empty())
      finding.sentences.push_back(std::move(note));
    if (!spec.note.empty()) finding.sentences.push_back(spec.note);
    if (const Checked* test = telling(tests)) {
      for (const std::string& field : spec.explain) {
        std::string reason = explaining(field, *test);
        if (!reason.empty()) finding.reasons.push_back(std::move(reason));
      }
      if (bears_on(spec.tests[static_cast<size_t>(test - tests.data())].field)) {
        add_limits(test->sides, folders, finding.reasons);
      }
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::vector<Finding> check_findings(const lab::Results& results) {
  RunFolders folders;
  return check_findings(Material(results), folders);
}

}  // namespace lockstep::report
