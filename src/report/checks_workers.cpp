// Tests that set several sides against each other: spread over the workers of a run, and most and least.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "records/statistics.h"
#include "report/checks.h"
#include "report/figures.h"

namespace lockstep::report {
namespace {

using lab::FindingTest;
using lab::TestKind;
using records::known;
using statistics::Estimate;

double spread_of_run(const Stat& stat, lab::Unit unit) {
  if (stat.count < 2) return records::kUnknown;
  if (unit == lab::Unit::share) return stat.high - stat.low;
  return stat.high == 0 ? 0 : (stat.high - stat.low) / std::fabs(stat.high);
}

/// The spreads of a case's runs by repeat, and an example.
struct Spreads {
  statistics::Repeats by_repeat;
  size_t runs = 0;
  size_t equal = 0;  ///< runs whose workers all have the same value
  std::string example;
};

Spreads spreads_of(const Observations& workers, const std::string& field) {
  std::map<const lab::RunResult*, Case> runs;
  for (const Observation& worker : workers) runs[worker.run].members.push_back(worker);
  const lab::Unit unit = unit_of(field);
  std::map<int, std::vector<double>> by_repeat;
  Spreads result;
  for (const Observation& worker : workers) {
    const auto run = runs.find(worker.run);
    if (run == runs.end()) continue;
    const Stat stat = run->second.stat(field);
    const double spread = spread_of_run(stat, unit);
    runs.erase(run);
    if (!known(spread)) continue;
    by_repeat[worker.run->plan.repeat].push_back(spread);
    ++result.runs;
    if (spread == 0) ++result.equal;
    if (result.example.empty())
      result.example = fmt::format("{} to {}", figure_text(stat.low, unit), figure_text(stat.high, unit));
  }
  for (const auto& [repeat, values] : by_repeat) result.by_repeat[repeat] = records::mean(values);
  return result;
}

/// Judges whether the workers' values are equal at all. Each run answers that for itself: an interval of mean spreads,
/// which are never negative, could not tell a difference in every run from none.
Judgement judge_equality(const FindingTest& test, const Spreads& spreads) {
  const size_t holding = test.is == "together" ? spreads.equal : spreads.runs - spreads.equal;
  if (holding == spreads.runs) return {Verdict::holds, ""};
  if (holding == 0) return {Verdict::fails, ""};
  return {Verdict::partly, fmt::format("so in {} of {} runs", holding, spreads.runs)};
}

Outcome spread_outcome(const FindingTest& test, const Case& workers, const std::string& where) {
  const Spreads spreads = spreads_of(workers.members, test.field);
  if (spreads.by_repeat.empty()) return {Verdict::unjudged, where, "fewer than two workers with a figure"};
  const bool one_tells = spreads.by_repeat.size() == 1 && is_common(workers.members, test.field);
  const Estimate spread =
      one_tells ? statistics::exactly(spreads.by_repeat.begin()->second) : statistics::mean_of(spreads.by_repeat);
  const std::string unit = unit_of(test.field) == lab::Unit::share ? "points" : "%";
  const std::string interval =
      spread.has_interval() && spread.low != spread.high
          ? fmt::format(" [{:.1f}, {:.1f}]", std::max(0.0, spread.low * 100), spread.high * 100)
          : "";
  Outcome outcome{Verdict::unjudged, where,
                  fmt::format("{:.1f}{} {} apart ({})", spread.value * 100, interval, unit, spreads.example)};
  if (test.within == 0 && spreads.runs > 1) {
    outcome.take(judge_equality(test, spreads));
    return outcome;
  }
  const statistics::Region together{-INFINITY, test.within};
  outcome.take(test.is == "together" ? judge(spread, together) : judge_outside(spread, together));
  return outcome;
}

/// The case of a value of `over`.
struct Rival {
  std::string at;
  double value = 0;
  const Case* from = nullptr;
};

std::vector<Rival> rivals_of(const std::vector<Case>& cases, const std::string& field) {
  std::vector<Rival> rivals;
  for (const Case& each : cases) {
    const double value = each.stat(field).mean;
    if (known(value)) rivals.push_back({each.key.front(), value, &each});
  }
  return rivals;
}

/// The wanted one must be ahead of each other one. A lead of the others within the limit is said to be none.
Judgement judge_winner(const FindingTest& test, const Rival& wanted, const std::vector<Rival>& rivals,
                       std::string& text) {
  const std::string ahead = test.kind == TestKind::most ? "greater" : "less";
  Judgement judgement{Verdict::holds, ""};
  for (const Rival& rival : rivals) {
    if (&rival == &wanted) continue;
    const Estimate lead = difference_of(wanted.from->members, rival.from->members, test.field);
    const Judgement one = judge_difference(lead, ahead, 0);
    if (one.verdict == Verdict::holds) continue;
    if (judge_difference(lead, "same", test.within).verdict == Verdict::holds)
      text += fmt::format(" ({} and {} alike)", rival.at, wanted.at);
    if (one.verdict == Verdict::fails) return one;
    if (judgement.verdict == Verdict::holds || one.verdict == Verdict::unjudged) judgement = one;
  }
  return judgement;
}

Outcome extreme_outcome(const FindingTest& test, const std::string& where, const std::vector<Rival>& rivals) {
  const auto wanted =
      std::find_if(rivals.begin(), rivals.end(), [&](const Rival& r) { return same_value(r.at, test.is); });
  if (rivals.size() < 2 || wanted == rivals.end()) {
    const std::string what =
        wanted == rivals.end() ? "no figure for " + test.is : "nothing to compare " + test.is + " with";
    return {Verdict::unjudged, where, what};
  }
  Outcome outcome{Verdict::unjudged, where, ""};
  const lab::Unit unit = unit_of(test.field);
  for (const Rival& rival : rivals) {
    outcome.text += fmt::format("{}{} {}{}", outcome.text.empty() ? "" : ", ", rival.at, figure_text(rival.value, unit),
                                figure_interval(estimate_of(rival.from->members, test.field), unit));
  }
  outcome.take(judge_winner(test, *wanted, rivals, outcome.text));
  return outcome;
}

}  // namespace

Checked check_spread(const Material& material, const FindingTest& test) {
  const Observations all = material.observations(test.first, part_of(test));
  const std::string what = fmt::format("{} of the workers of a run{}", field_title(test.field), place_of(test.first));
  if (all.empty()) return nothing_known(what, what_is_missing(material, test.first, test.field));
  const Observations runs = material.observations(test.first);
  std::vector<Outcome> outcomes;
  for (const Case& each : cases_of(test, runs)) {
    Case workers{each.key, {}};
    std::copy_if(all.begin(), all.end(), std::back_inserter(workers.members), [&](const Observation& o) {
      return std::any_of(each.members.begin(), each.members.end(),
                         [&](const Observation& r) { return r.run == o.run; });
    });
    if (workers.members.empty()) continue;
    outcomes.push_back(spread_outcome(test, workers, case_name(test, each, several_groups(runs))));
    outcomes.back().sides = {{"all", each.members}};
  }
  const bool together = test.is == "together";
  const std::string claim = test.within == 0 ? std::string(together ? "should be equal" : "should differ")
                                             : fmt::format("should be {} {}", together ? "at most" : "more than",
                                                           limit_text(test.within, unit_of(test.field)));
  return checked_of(what, outcomes, claim);
}

Checked check_extreme(const Material& material, const FindingTest& test) {
  const Observations all = material.observations(test.first, part_of(test));
  const std::string what =
      fmt::format("{} by {}{}", field_title(test.field), field_title(test.over), place_of(test.first));
  if (all.empty()) return nothing_known(what, what_is_missing(material, test.first, test.field));
  std::vector<Outcome> outcomes;
  for (const Case& each : cases_by(all, test.by)) {
    const std::vector<Case> along = cases_by(each.members, {test.over});
    const std::vector<Rival> rivals = rivals_of(along, test.field);
    outcomes.push_back(extreme_outcome(test, describe(test.by, each.key), rivals));
    Side wanted{test.is, {}};
    Side others{"the others", {}};
    for (const Rival& rival : rivals) {
      Observations& members = (same_value(rival.at, test.is) ? wanted : others).members;
      members.insert(members.end(), rival.from->members.begin(), rival.from->members.end());
    }
    outcomes.back().sides = {std::move(wanted), std::move(others)};
  }
  const std::string claim =
      fmt::format("{} should have the {}", test.is, test.kind == TestKind::most ? "most" : "least");
  return checked_of(what, outcomes, claim);
}

}  // namespace lockstep::report
