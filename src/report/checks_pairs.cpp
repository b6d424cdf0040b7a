// Tests that compare two sides: compare and ratio.
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

std::string pair_text(const FindingTest& test, double first, double second, const statistics::Estimate& estimate) {
  const std::string second_name = describe(test.second, test.first);
  const lab::Unit unit = unit_of(test.field);
  const std::string both = fmt::format("{} against {}", figure_text(first, unit), figure_text(second, unit));
  if (test.kind == TestKind::ratio) {
    const std::string of = second_name.empty() ? "the second" : "that with " + second_name;
    return fmt::format("{:.2f}{} {} {} ({})", first / second, plain_interval(estimate), first < second ? "of" : "times",
                       of, both);
  }
  return fmt::format("{} ({}{})", both, difference_text(first, second, unit), difference_interval(estimate, unit));
}

std::string claim(const FindingTest& test) {
  if (test.kind == TestKind::ratio) return bounds_text(test, lab::Unit::times);
  const std::string within = limit_text(test.within, unit_of(test.field));
  if (test.is == "same") return "should be the same within " + within;
  if (test.is == "different") return "should differ by more than " + within;
  return fmt::format("should be {} by more than {}", test.is, within);
}

Outcome outcome(const FindingTest& test, const Case& first, const Case& second) {
  const double a = first.stat(test.field).mean;
  const double b = second.stat(test.field).mean;
  Outcome result{Verdict::unjudged, describe(test.by, first.key), ""};
  if (!known(a) || !known(b) || (test.kind == TestKind::ratio && b == 0)) {
    result.text = fmt::format("no {} on {}", field_title(test.field), known(a) ? "the second side" : "the first side");
    return result;
  }
  const bool ratio = test.kind == TestKind::ratio;
  const statistics::Estimate estimate = ratio ? ratio_of(first.members, second.members, test.field)
                                              : difference_of(first.members, second.members, test.field);
  result.text = pair_text(test, a, b, estimate);
  result.take(ratio ? judge(estimate, bounds_of(test)) : judge_difference(estimate, test.is, test.within));
  return result;
}

std::string why_nothing(const Material& material, const FindingTest& test, bool first, bool second) {
  std::string why;
  if (!first) why = what_is_missing(material, test.first, test.field);
  if (!second) why += (why.empty() ? "" : "; ") + what_is_missing(material, test.second, test.field);
  return why.empty() ? fmt::format("no two runs have the same {}", fmt::join(test.by, ", ")) : why;
}

}  // namespace

Checked check_pairs(const Material& material, const FindingTest& test) {
  const lab::Per per = part_of(test);
  const Observations first = material.observations(test.first, per);
  const Observations second = material.observations(test.second, per);
  const std::string first_name = describe(test.first, test.second);
  const std::string second_name = describe(test.second, test.first);
  const std::string what = fmt::format("{}, {} against {}", field_title(test.field), first_name, second_name);
  std::vector<Outcome> outcomes;
  const std::vector<Case> others = cases_by(second, test.by);
  for (const Case& one : cases_by(first, test.by)) {
    const Case* other = partner(others, one.key);
    if (other == nullptr) continue;
    outcomes.push_back(outcome(test, one, *other));
    outcomes.back().sides = {{first_name, one.members}, {second_name, other->members}};
  }
  if (outcomes.empty()) return nothing_known(what, why_nothing(material, test, !first.empty(), !second.empty()));
  return checked_of(what, outcomes, claim(test));
}

}  // namespace lockstep::report
