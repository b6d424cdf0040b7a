#include "report/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/figures.h"

namespace lockstep::report {
namespace {

/// More cases than these are counted, not listed.
constexpr size_t kListedCases = 4;

size_t count(const std::vector<Outcome>& outcomes, Verdict verdict) {
  return static_cast<size_t>(
      std::count_if(outcomes.begin(), outcomes.end(), [&](const Outcome& o) { return o.verdict == verdict; }));
}

/// Those that do not hold come first: they are what a reader looks for.
std::vector<const Outcome*> most_telling(const std::vector<Outcome>& outcomes) {
  std::vector<const Outcome*> order;
  for (const Outcome& outcome : outcomes) order.push_back(&outcome);
  const auto rank = [](const Outcome* o) {
    return o->verdict == Verdict::fails ? 0 : o->verdict == Verdict::partly ? 1 : o->verdict == Verdict::holds ? 2 : 3;
  };
  if (order.size() > kListedCases) {
    std::stable_sort(order.begin(), order.end(), [&](const auto* a, const auto* b) { return rank(a) < rank(b); });
    order.resize(kListedCases);
  }
  return order;
}

std::string ending(const std::vector<Outcome>& outcomes) {
  const size_t known = outcomes.size() - count(outcomes, Verdict::unknown);
  const size_t holds = count(outcomes, Verdict::holds);
  if (known == 0) return "cannot be said";
  if (outcomes.size() == 1) return std::string(name(outcomes[0].verdict));
  if (holds == known) return known == 2 ? "holds in both cases" : fmt::format("holds in all {} cases", known);
  if (holds == 0) return fmt::format("holds in none of {} cases", known);
  return fmt::format("holds in {} of {} cases", holds, known);
}

}  // namespace

Verdict verdict_of(const std::vector<Outcome>& outcomes) {
  const size_t known = outcomes.size() - count(outcomes, Verdict::unknown);
  if (known == 0) return Verdict::unknown;
  if (count(outcomes, Verdict::holds) == known) return Verdict::holds;
  return count(outcomes, Verdict::fails) == known ? Verdict::fails : Verdict::partly;
}

std::string sentence_of(const std::string& what, const std::vector<Outcome>& outcomes, const std::string& claim) {
  std::string text = capital(what) + ": ";
  const std::vector<const Outcome*> listed = most_telling(outcomes);
  for (size_t i = 0; i < listed.size(); ++i) {
    if (i > 0) text += "; ";
    if (!listed[i]->where.empty()) text += listed[i]->where + " ";
    text += listed[i]->text;
  }
  if (listed.size() < outcomes.size()) text += fmt::format("; and {} more", outcomes.size() - listed.size());
  if (!claim.empty()) text += ", " + claim;
  return text + ": " + ending(outcomes) + ".";
}

Checked check(const Material& material, const lab::FindingTest& test) {
  switch (test.kind) {
    case lab::TestKind::compare:
    case lab::TestKind::ratio:
      return check_pairs(material, test);
    case lab::TestKind::trend:
      return check_trend(material, test);
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

bool is_per_worker(const lab::FindingTest& test) {
  return test.kind == lab::TestKind::spread || of_worker(test.over) ||
         std::any_of(test.by.begin(), test.by.end(), [](const std::string& field) { return of_worker(field); });
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

double relative_difference(double a, double b) {
  const double size = std::max(std::fabs(a), std::fabs(b));
  return size > 0 ? (a - b) / size : 0;
}

std::string what_is_missing(const Material& material, const lab::Filter& filter, const std::string& field) {
  const size_t done = material.observations(filter, false).size();
  const size_t missing = material.missing(filter);
  const std::string which = describe({{}, filter.where}, {});
  const std::string of = which.empty() ? "" : " with " + which;
  if (done == 0 && missing == 0) return fmt::format("there is no run{} in this experiment", of);
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

std::string limit_text(double within) { return fmt::format("{:g} %", within * 100); }

bool within_bounds(const lab::FindingTest& test, double value) {
  return (!test.at_least || value >= *test.at_least) && (!test.at_most || value <= *test.at_most);
}

}  // namespace lockstep::report
