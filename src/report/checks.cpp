#include "report/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "records/format.h"
#include "report/figures.h"

namespace lockstep::report {
namespace {

/// Further cases are counted, not listed.
constexpr size_t kListedCases = 4;

size_t count(const std::vector<Outcome>& outcomes, Verdict verdict) {
  return static_cast<size_t>(
      std::count_if(outcomes.begin(), outcomes.end(), [&](const Outcome& o) { return o.verdict == verdict; }));
}

/// Returns the cases to list, first those that do not hold: a reader looks for them.
std::vector<const Outcome*> most_telling(const std::vector<Outcome>& outcomes) {
  std::vector<const Outcome*> order;
  for (const Outcome& outcome : outcomes) order.push_back(&outcome);
  const auto rank = [](const Outcome* o) {
    constexpr std::array kOrder = {Verdict::fails, Verdict::partly, Verdict::noise, Verdict::holds, Verdict::unjudged};
    return std::find(kOrder.begin(), kOrder.end(), o->verdict) - kOrder.begin();
  };
  if (order.size() > kListedCases) {
    std::stable_sort(order.begin(), order.end(), [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
    order.resize(kListedCases);
  }
  return order;
}

/// Returns "holds in 3 of 5 cases, does not hold in 1, within noise in 1".
std::string ending(const std::vector<Outcome>& outcomes) {
  const size_t unjudged = count(outcomes, Verdict::unjudged);
  const size_t judged = outcomes.size() - unjudged;
  if (judged == 0) return std::string(name(Verdict::unjudged));
  std::string text;
  for (const Verdict verdict : {Verdict::holds, Verdict::partly, Verdict::fails, Verdict::noise}) {
    const size_t cases = count(outcomes, verdict);
    if (cases == 0) continue;
    if (cases == judged) {
      text = name(verdict);
      if (judged > 1) text += judged == 2 ? " in both cases" : fmt::format(" in all {} cases", judged);
      break;
    }
    text += text.empty() ? fmt::format("{} in {} of {} cases", name(verdict), cases, judged)
                         : fmt::format(", {} in {}", name(verdict), cases);
  }
  return unjudged == 0 ? text : fmt::format("{}, not judged in {}", text, counted(unjudged, "more case"));
}

std::string sentence_of(const std::string& what, const std::vector<Outcome>& outcomes, const std::string& claim) {
  std::string text = capital(what) + ": ";
  const std::vector<const Outcome*> listed = most_telling(outcomes);
  for (size_t i = 0; i < listed.size(); ++i) {
    if (i > 0) text += "; ";
    if (!listed[i]->where.empty()) text += listed[i]->where + ": ";
    text += listed[i]->text;
  }
  if (listed.size() < outcomes.size()) text += fmt::format("; and {} more", outcomes.size() - listed.size());
  if (!claim.empty()) text += ", " + claim;
  return text + ": " + ending(outcomes) + ".";
}

void add_sides(const std::vector<Side>& from, std::vector<Side>& sides) {
  if (sides.empty()) sides.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    Side& side = sides.at(i);
    if (side.name.empty()) {
      side.name = from[i].name;
    } else if (side.name.find(from[i].name) == std::string::npos) {
      side.name += " or " + from[i].name;
    }
    side.members.insert(side.members.end(), from[i].members.begin(), from[i].members.end());
  }
}

}  // namespace

void Outcome::take(const Judgement& judgement) {
  verdict = judgement.verdict;
  too_few = verdict == Verdict::unjudged;
  if (!judgement.note.empty()) text += ", " + judgement.note;
}

Verdict verdict_of(const std::vector<Verdict>& verdicts) {
  const auto count = [&](Verdict verdict) { return std::count(verdicts.begin(), verdicts.end(), verdict); };
  const auto judged = static_cast<std::ptrdiff_t>(verdicts.size()) - count(Verdict::unjudged);
  const auto decided = judged - count(Verdict::noise);
  if (judged == 0) return Verdict::unjudged;
  if (2 * decided < judged) return Verdict::noise;
  if (count(Verdict::holds) == decided) return Verdict::holds;
  return count(Verdict::fails) == decided ? Verdict::fails : Verdict::partly;
}

Checked checked_of(const std::string& what, const std::vector<Outcome>& outcomes, const std::string& claim) {
  std::vector<Verdict> verdicts;
  for (const Outcome& outcome : outcomes) verdicts.push_back(outcome.verdict);
  Checked result{verdict_of(verdicts), sentence_of(what, outcomes, claim)};
  result.cases = outcomes.size();
  result.decided = outcomes.size() - count(outcomes, Verdict::noise) - count(outcomes, Verdict::unjudged);
  result.too_few = std::any_of(outcomes.begin(), outcomes.end(), [](const Outcome& o) { return o.too_few; });
  for (const Verdict telling : {Verdict::fails, Verdict::partly, Verdict::noise, Verdict::holds, Verdict::unjudged}) {
    if (count(outcomes, telling) == 0) continue;
    for (const Outcome& outcome : outcomes) {
      if (outcome.verdict == telling) add_sides(outcome.sides, result.sides);
    }
    const bool failing = telling == Verdict::fails || telling == Verdict::partly;
    result.failing_alone = failing && count(outcomes, Verdict::holds) > 0;
    break;
  }
  return result;
}

Checked check(const Material& material, RunFolders& folders, const lab::FindingTest& test) {
  switch (test.kind) {
    case lab::TestKind::compare:
    case lab::TestKind::ratio:
      return check_pairs(material, test);
    case lab::TestKind::trend:
      return check_trend(material, test);
    case lab::TestKind::slope:
      return check_slope(material, test);
    case lab::TestKind::curve:
      return check_curves(material, folders, test);
    case lab::TestKind::value:
      return check_value(material, test);
    case lab::TestKind::spread:
      return check_spread(material, test);
    case lab::TestKind::most:
    case lab::TestKind::least:
      return check_extreme(material, test);
  }
  return {};
}

lab::Per part_of(const lab::FindingTest& test) {
  if (test.per != lab::Per::run) return test.per;
  const bool workers = test.kind == lab::TestKind::spread || lab::of_part(test.over) ||
                       std::any_of(test.by.begin(), test.by.end(), lab::of_part);
  return workers ? lab::Per::worker : lab::Per::run;
}

std::string describe(const lab::Filter& filter, const lab::Filter& other) {
  Fields fields;
  Key key;
  for (const auto& condition : filter.where) {
    if (std::find(other.where.begin(), other.where.end(), condition) != other.where.end()) continue;
    fields.push_back(condition.first);
    key.push_back(fmt::format("{}", fmt::join(condition.second, " or ")));
  }
  const std::string text = describe(fields, key);
  return text.empty() ? fmt::format("{}", fmt::join(filter.groups, ", ")) : text;
}

std::string place_of(const lab::Filter& filter) {
  const std::string where = describe({{}, filter.where}, {});
  return where.empty() ? "" : " (" + where + ")";
}

double difference(double a, double b, lab::Unit unit) {
  if (unit == lab::Unit::share || a == b) return a - b;
  return (a - b) / std::fabs(b);
}

std::string difference_text(double a, double b, lab::Unit unit) {
  constexpr double kManyTimes = 10;
  if (unit == lab::Unit::share) return signed_text((a - b) * 100, 2) + " points";
  if (b == 0) return a == 0 ? "+0 %" : "from nothing";
  const double times = a / b;
  if (times >= kManyTimes) return fmt::format("{} times as much", records::count_text(std::round(times)));
  if (times > 0 && times <= 1 / kManyTimes)
    return fmt::format("{} times less", records::count_text(std::round(1 / times)));
  const double percent = difference(a, b, unit) * 100;
  return signed_text(percent, std::fabs(percent) < kManyTimes ? 1 : 0) + " %";
}

std::string what_is_missing(const Material& material, const lab::Filter& filter, const std::string& field) {
  const size_t done = material.observations(filter).size();
  const size_t missing = material.missing(filter);
  const std::string which = describe({{}, filter.where}, {});
  const std::string of = which.empty() ? "" : " with " + which;
  if (done == 0 && missing == 0) return fmt::format("this experiment has no run{}", of);
  if (done == 0 && material.failed(filter) == missing)
    return fmt::format("{}{} failed", missing == 1 ? "the run" : fmt::format("all {} runs", missing), of);
  if (done == 0)
    return fmt::format("{}{} not done", missing == 1 ? "the run" : fmt::format("all {} runs", missing),
                       of + (missing == 1 ? " is" : " are"));
  return fmt::format("{}{} recorded no {}", counted(done, "run"), of, field_title(field));
}

std::string bounds_text(const lab::FindingTest& test, lab::Unit unit) {
  std::string text;
  if (test.at_least) text = "at least " + figure_text(*test.at_least, unit);
  if (test.at_most) text += (text.empty() ? "at most " : " and at most ") + figure_text(*test.at_most, unit);
  return text;
}

std::string limit_text(double within, lab::Unit unit) {
  return fmt::format("{:g} {}", within * 100, unit != lab::Unit::share ? "%" : within == 0.01 ? "point" : "points");
}

statistics::Region bounds_of(const lab::FindingTest& test) {
  return {test.at_least.value_or(-INFINITY), test.at_most.value_or(INFINITY)};
}

statistics::Region differences_of(const std::string& is, double within) {
  if (is == "less") return {-INFINITY, -within, true};
  if (is == "greater") return {within, INFINITY, true};
  return {-within, within};
}

Judgement judge_difference(const statistics::Estimate& difference, const std::string& is, double within) {
  const statistics::Region region = differences_of(is, within);
  return is == "different" ? judge_outside(difference, region) : judge(difference, region);
}

Checked nothing_known(const std::string& what, const std::string& why) {
  return {Verdict::unjudged, fmt::format("{}: {}: {}.", capital(what), why, name(Verdict::unjudged))};
}

const Case* partner(const std::vector<Case>& cases, const Key& key) {
  const auto found = std::find_if(cases.begin(), cases.end(), [&](const Case& other) {
    return std::equal(key.begin(), key.end(), other.key.begin(), other.key.end(), same_value);
  });
  return found == cases.end() ? nullptr : &*found;
}

std::vector<Case> cases_of(const lab::FindingTest& test, const Observations& observations) {
  return test.by.empty() ? variations(observations) : cases_by(observations, test.by);
}

std::string case_name(const lab::FindingTest& test, const Case& each, bool with_group) {
  if (!test.by.empty()) return describe(test.by, each.key);
  return title_of(*each.members.front().run, with_group);
}

}  // namespace lockstep::report
