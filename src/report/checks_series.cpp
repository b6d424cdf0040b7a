// Tests over the cases of one side: trend, value, spread, most and least.
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

struct Point {
  std::string at;
  double value = 0;
  const Case* from = nullptr;
};

/// Returns the known means along `over`.
std::vector<Point> points_of(const std::vector<Case>& cases, const std::string& field) {
  std::vector<Point> points;
  for (const Case& each : cases) {
    const double value = each.stat(field).mean;
    if (known(value)) points.push_back({each.key.front(), value, &each});
  }
  return points;
}

Verdict grows(const std::vector<Point>& points, double within, double sign, lab::Unit unit) {
  const double all = sign * difference(points.back().value, points.front().value, unit);
  if (all <= within) return Verdict::fails;
  for (size_t i = 1; i < points.size(); ++i) {
    if (sign * difference(points[i].value, points[i - 1].value, unit) < -within) return Verdict::partly;
  }
  return Verdict::holds;
}

/// Growth that ends in a fall is not saturation.
Verdict saturates(const std::vector<Point>& points, double within, lab::Unit unit) {
  if (points.size() < 3) return Verdict::unknown;
  if (difference(points.back().value, points.front().value, unit) <= within) return Verdict::fails;
  const double last = difference(points.back().value, points[points.size() - 2].value, unit);
  return std::fabs(last) <= within ? Verdict::holds : Verdict::fails;
}

/// Returns the lowest and the highest point.
std::pair<double, double> range_of(const std::vector<Point>& points) {
  const auto [low, high] = std::minmax_element(points.begin(), points.end(),
                                               [](const Point& a, const Point& b) { return a.value < b.value; });
  return {low->value, high->value};
}

Verdict trend_of(const FindingTest& test, const std::vector<Point>& points) {
  if (points.size() < 2) return Verdict::unknown;
  const lab::Unit unit = unit_of(test.field);
  if (test.is == "grows") return grows(points, test.within, 1, unit);
  if (test.is == "falls") return grows(points, test.within, -1, unit);
  if (test.is == "saturates") return saturates(points, test.within, unit);
  const auto [low, high] = range_of(points);
  return difference(high, low, unit) <= test.within ? Verdict::holds : Verdict::fails;
}

/// Returns the figure that the limit applies to.
std::string change_text(const FindingTest& test, const std::vector<Point>& points) {
  const lab::Unit unit = unit_of(test.field);
  const double last = points.back().value;
  if (test.is == "flat") {
    const auto [low, high] = range_of(points);
    return fmt::format("the highest {} against the lowest", difference_text(high, low, unit));
  }
  const std::string all = difference_text(last, points.front().value, unit);
  if (test.is != "saturates" || points.size() < 3) return all;
  return fmt::format("{}, {} in the last step", all, difference_text(last, points[points.size() - 2].value, unit));
}

/// "3.7 s at 1, 2.1 s at 2, 1.4 s at 3 (-62 %)"
std::string trend_text(const FindingTest& test, const std::vector<Point>& points) {
  if (points.empty()) return "no run recorded " + field_title(test.field);
  if (points.size() == 1) return fmt::format("known at only one {} ({})", field_title(test.over), points[0].at);
  std::string values;
  for (size_t i = 0; i < points.size(); ++i) {
    const bool listed = points.size() <= 6 || i == 0 || i + 1 == points.size();
    if (!listed && i == 1) values += ", …";
    if (!listed) continue;
    values +=
        fmt::format("{}{} at {}", i == 0 ? "" : ", ", figure_text(points[i].value, unit_of(test.field)), points[i].at);
  }
  values += " (" + change_text(test, points) + ")";
  if (test.is == "saturates" && points.size() == 2) values += ", too few to see growth slow down";
  return values;
}

std::string trend_claim(const FindingTest& test) {
  const std::string within = limit_text(test.within, unit_of(test.field));
  if (test.is == "flat") return "should stay within " + within;
  if (test.is == "saturates") return "should grow, and in the last step by at most " + within;
  return fmt::format("should {} by more than {}", test.is == "grows" ? "grow" : "fall", within);
}

Checked nothing(const Material& material, const FindingTest& test, const std::string& what) {
  return {Verdict::unknown, capital(what) + ": " + what_is_missing(material, test.first, test.field) + ": unknown."};
}

/// Returns the cases by the fields of the test, or one per variation.
std::vector<Case> cases_of(const FindingTest& test, const Observations& observations) {
  return test.by.empty() ? variations(observations) : cases_by(observations, test.by);
}

std::string case_name(const FindingTest& test, const Case& each, bool with_group) {
  if (!test.by.empty()) return describe(test.by, each.key);
  return title_of(*each.members.front().run, with_group);
}

double spread_of_run(const Case& run, const std::string& field) {
  const Stat stat = run.stat(field);
  if (stat.count < 2) return records::kUnknown;
  if (unit_of(field) == lab::Unit::share) return stat.high - stat.low;
  return stat.high == 0 ? 0 : (stat.high - stat.low) / std::fabs(stat.high);
}

Outcome spread_outcome(const FindingTest& test, const Case& each, const std::string& where) {
  std::vector<double> spreads;
  std::string example;
  std::vector<const lab::RunResult*> runs;
  for (const Observation& member : each.members) {
    if (std::find(runs.begin(), runs.end(), member.run) == runs.end()) runs.push_back(member.run);
  }
  for (const lab::RunResult* run : runs) {
    Case of_run;
    std::copy_if(each.members.begin(), each.members.end(), std::back_inserter(of_run.members),
                 [&](const Observation& o) { return o.run == run; });
    spreads.push_back(spread_of_run(of_run, test.field));
    if (!example.empty() || !known(spreads.back())) continue;
    const Stat stat = of_run.stat(test.field);
    const lab::Unit unit = unit_of(test.field);
    example = fmt::format("{} to {}", figure_text(stat.low, unit), figure_text(stat.high, unit));
  }
  const double spread = records::mean(spreads);
  if (!known(spread)) return {Verdict::unknown, where, "fewer than two workers with a figure"};
  const bool together = spread <= test.within;
  return {together == (test.is == "together") ? Verdict::holds : Verdict::fails, where,
          fmt::format("{:.1f} {} apart ({})", spread * 100, unit_of(test.field) == lab::Unit::share ? "points" : "%",
                      example)};
}

/// Returns the largest or smallest of the points.
const Point& winner(const FindingTest& test, const std::vector<Point>& points) {
  const auto less = [](const Point& a, const Point& b) { return a.value < b.value; };
  return test.kind == TestKind::most ? *std::max_element(points.begin(), points.end(), less)
                                     : *std::min_element(points.begin(), points.end(), less);
}

Outcome extreme_outcome(const FindingTest& test, const std::string& where, const std::vector<Point>& points) {
  const auto wanted =
      std::find_if(points.begin(), points.end(), [&](const Point& p) { return same_value(p.at, test.is); });
  if (points.size() < 2 || wanted == points.end()) {
    const std::string what =
        wanted == points.end() ? "no figure for " + test.is : "nothing to compare " + test.is + " with";
    return {Verdict::unknown, where, what};
  }
  std::string text;
  for (const Point& point : points) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", point.at, figure_text(point.value, unit_of(test.field)));
  }
  const Point& best = winner(test, points);
  if (&best == &*wanted) return {Verdict::holds, where, text};
  const bool alike = std::fabs(difference(wanted->value, best.value, unit_of(test.field))) <= test.within;
  if (alike) text += fmt::format(" ({} and {} alike)", best.at, wanted->at);
  return {alike ? Verdict::partly : Verdict::fails, where, text};
}

}  // namespace

Checked check_trend(const Material& material, const FindingTest& test) {
  const Observations all = material.observations(test.first, is_per_worker(test));
  const std::string what =
      fmt::format("{} over {}{}", field_title(test.field), field_title(test.over), place_of(test.first));
  if (all.empty()) return nothing(material, test, what);
  std::vector<Outcome> outcomes;
  for (const Case& each : cases_by(all, test.by)) {
    std::vector<Case> along = cases_by(each.members, {test.over});
    sort_by_number(along, 0);
    const std::vector<Point> points = points_of(along, test.field);
    outcomes.push_back({trend_of(test, points), describe(test.by, each.key), trend_text(test, points)});
    if (outcomes.back().verdict == Verdict::unknown) continue;
    outcomes.back().sides = {{describe({test.over}, {points.front().at}), points.front().from->members},
                             {describe({test.over}, {points.back().at}), points.back().from->members}};
  }
  return checked_of(what, outcomes, trend_claim(test));
}

Checked check_value(const Material& material, const FindingTest& test) {
  const Observations all = material.observations(test.first, is_per_worker(test));
  const lab::Unit unit = unit_of(test.field);
  const std::string what = field_title(test.field) + place_of(test.first);
  if (all.empty()) return nothing(material, test, what);
  std::vector<Outcome> outcomes;
  for (const Case& each : cases_of(test, all)) {
    const double value = each.stat(test.field).mean;
    const Verdict verdict = !known(value)                ? Verdict::unknown
                            : within_bounds(test, value) ? Verdict::holds
                                                         : Verdict::fails;
    outcomes.push_back(
        {verdict, case_name(test, each, several_groups(all)), figure_text(value, unit), {{"all", each.members}}});
  }
  return checked_of(what, outcomes, bounds_text(test, unit));
}

Checked check_spread(const Material& material, const FindingTest& test) {
  const Observations all = material.observations(test.first, true);
  const std::string what = fmt::format("{} of the workers of a run{}", field_title(test.field), place_of(test.first));
  if (all.empty()) return nothing(material, test, what);
  const Observations runs = material.observations(test.first, false);
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
  const std::string claim = fmt::format("should be {} {}", test.is == "together" ? "at most" : "more than",
                                        limit_text(test.within, unit_of(test.field)));
  return checked_of(what, outcomes, claim);
}

Checked check_extreme(const Material& material, const FindingTest& test) {
  const Observations all = material.observations(test.first, is_per_worker(test));
  const std::string what =
      fmt::format("{} by {}{}", field_title(test.field), field_title(test.over), place_of(test.first));
  if (all.empty()) return nothing(material, test, what);
  std::vector<Outcome> outcomes;
  for (const Case& each : cases_by(all, test.by)) {
    const std::vector<Case> along = cases_by(each.members, {test.over});
    const std::vector<Point> points = points_of(along, test.field);
    outcomes.push_back(extreme_outcome(test, describe(test.by, each.key), points));
    Side wanted{test.is, {}};
    Side others{"the others", {}};
    for (const Point& point : points) {
      Observations& members = (same_value(point.at, test.is) ? wanted : others).members;
      members.insert(members.end(), point.from->members.begin(), point.from->members.end());
    }
    outcomes.back().sides = {std::move(wanted), std::move(others)};
  }
  const std::string claim =
      fmt::format("{} should have the {}", test.is, test.kind == TestKind::most ? "most" : "least");
  return checked_of(what, outcomes, claim);
}

}  // namespace lockstep::report
