// Tests along a field: trend and slope; and those of a value.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "records/statistics.h"
#include "report/checks.h"
#include "report/figures.h"

namespace lockstep::report {
namespace {

using lab::FindingTest;
using records::known;
using statistics::Estimate;

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

Estimate change(const FindingTest& test, const Point& from, const Point& to) {
  return difference_of(to.from->members, from.from->members, test.field);
}

/// Returns the lowest and the highest point.
std::pair<const Point*, const Point*> range_of(const std::vector<Point>& points) {
  const auto [low, high] = std::minmax_element(points.begin(), points.end(),
                                               [](const Point& a, const Point& b) { return a.value < b.value; });
  return {&*low, &*high};
}

/// The whole change decides; steps that are shown to turn back by more than the limit leave it true in part.
Judgement judge_growth(const FindingTest& test, const std::vector<Point>& points) {
  const bool falls = test.is == "falls";
  const Judgement whole =
      judge_difference(change(test, points.front(), points.back()), falls ? "less" : "greater", test.within);
  if (whole.verdict != Verdict::holds) return whole;
  for (size_t i = 1; i < points.size(); ++i) {
    const Estimate step = change(test, points[i - 1], points[i]);
    if (judge_difference(step, falls ? "greater" : "less", test.within).verdict == Verdict::holds)
      return {Verdict::partly, fmt::format("but it turns back at {}", points[i].at)};
  }
  return whole;
}

/// Growth that ends in a fall is not saturation.
Judgement judge_saturation(const FindingTest& test, const std::vector<Point>& points) {
  if (points.size() < 3) return {};
  const Judgement whole = judge_difference(change(test, points.front(), points.back()), "greater", test.within);
  if (whole.verdict != Verdict::holds) return whole;
  return judge_difference(change(test, points[points.size() - 2], points.back()), "same", test.within);
}

Judgement judge_trend(const FindingTest& test, const std::vector<Point>& points) {
  if (test.is == "saturates") return judge_saturation(test, points);
  if (test.is != "flat") return judge_growth(test, points);
  const auto [low, high] = range_of(points);
  return judge_difference(change(test, *low, *high), "same", test.within);
}

/// Returns the figure that the limit applies to.
std::string change_text(const FindingTest& test, const std::vector<Point>& points) {
  const lab::Unit unit = unit_of(test.field);
  const auto text = [&](const Point& from, const Point& to) {
    return difference_text(to.value, from.value, unit) + difference_interval(change(test, from, to), unit);
  };
  if (test.is == "flat") {
    const auto [low, high] = range_of(points);
    return fmt::format("the highest {} against the lowest", text(*low, *high));
  }
  const std::string all = text(points.front(), points.back());
  if (test.is != "saturates" || points.size() < 3) return all;
  return fmt::format("{}, {} in the last step", all, text(points[points.size() - 2], points.back()));
}

/// "3.7 s at 1, 2.1 s at 2, 1.4 s at 3"
std::string points_text(const FindingTest& test, const std::vector<Point>& points) {
  std::string values;
  for (size_t i = 0; i < points.size(); ++i) {
    const bool listed = points.size() <= 6 || i == 0 || i + 1 == points.size();
    if (!listed && i == 1) values += ", …";
    if (!listed) continue;
    values +=
        fmt::format("{}{} at {}", i == 0 ? "" : ", ", figure_text(points[i].value, unit_of(test.field)), points[i].at);
  }
  return values;
}

std::string why_too_few(const FindingTest& test, const std::vector<Point>& points) {
  if (points.empty()) return "no run recorded " + field_title(test.field);
  return fmt::format("known at only one {} ({})", field_title(test.over), points[0].at);
}

Outcome trend_outcome(const FindingTest& test, const std::string& where, const std::vector<Point>& points) {
  Outcome outcome{Verdict::unjudged, where, ""};
  if (points.size() < 2) {
    outcome.text = why_too_few(test, points);
    return outcome;
  }
  outcome.text = fmt::format("{} ({})", points_text(test, points), change_text(test, points));
  if (test.is == "saturates" && points.size() == 2) outcome.text += ", too few to see growth slow down";
  outcome.take(judge_trend(test, points));
  return outcome;
}

/// Returns the slope of the logarithms over the points, in each repeat that has them all.
statistics::Repeats slopes_of(const FindingTest& test, const std::vector<Point>& points) {
  std::map<int, std::pair<std::vector<double>, std::vector<double>>> lines;
  for (const Point& point : points) {
    for (const auto& [repeat, value] : repeats_of(point.from->members, test.field)) {
      lines[repeat].first.push_back(std::log(number_of(point.at)));
      lines[repeat].second.push_back(std::log(value));
    }
  }
  statistics::Repeats slopes;
  for (const auto& [repeat, line] : lines) {
    const double slope = statistics::slope_of(line.first, line.second);
    if (line.first.size() == points.size() && known(slope)) slopes[repeat] = slope;
  }
  return slopes;
}

Outcome slope_outcome(const FindingTest& test, const std::string& where, const std::vector<Point>& points) {
  Outcome outcome{Verdict::unjudged, where, ""};
  const bool numbers =
      std::all_of(points.begin(), points.end(), [](const Point& p) { return p.value > 0 && number_of(p.at) > 0; });
  if (points.size() < 2 || !numbers) {
    outcome.text = points.size() < 2 ? why_too_few(test, points) : "a slope needs positive numbers";
    return outcome;
  }
  const statistics::Repeats slopes = slopes_of(test, points);
  const bool exact = slopes.size() == 1 && std::all_of(points.begin(), points.end(), [&](const Point& p) {
                       return is_exact(p.from->members, test.field);
                     });
  const Estimate slope = exact ? statistics::exactly(slopes.begin()->second) : statistics::mean_of(slopes);
  outcome.text = fmt::format("{} (slope {:.2f}{})", points_text(test, points), slope.value, plain_interval(slope));
  outcome.take(judge(slope, bounds_of(test)));
  return outcome;
}

std::string trend_claim(const FindingTest& test) {
  const std::string within = limit_text(test.within, unit_of(test.field));
  if (test.is == "flat") return "should stay within " + within;
  if (test.is == "saturates") return "should grow, and in the last step by at most " + within;
  return fmt::format("should {} by more than {}", test.is == "grows" ? "grow" : "fall", within);
}

/// Judges the points along `over` in each case.
template <typename Judge>
Checked check_along(const Material& material, const FindingTest& test, const std::string& claim, const Judge& judged) {
  const Observations all = material.observations(test.first, part_of(test));
  const std::string what =
      fmt::format("{} over {}{}", field_title(test.field), field_title(test.over), place_of(test.first));
  if (all.empty()) return nothing_known(what, what_is_missing(material, test.first, test.field));
  std::vector<Outcome> outcomes;
  for (const Case& each : cases_by(all, test.by)) {
    std::vector<Case> along = cases_by(each.members, {test.over});
    sort_by_number(along, 0);
    const std::vector<Point> points = points_of(along, test.field);
    outcomes.push_back(judged(test, describe(test.by, each.key), points));
    if (points.size() < 2) continue;
    outcomes.back().sides = {{describe({test.over}, {points.front().at}), points.front().from->members},
                             {describe({test.over}, {points.back().at}), points.back().from->members}};
  }
  return checked_of(what, outcomes, claim);
}

}  // namespace

Checked check_trend(const Material& material, const FindingTest& test) {
  return check_along(material, test, trend_claim(test), trend_outcome);
}

Checked check_slope(const Material& material, const FindingTest& test) {
  const std::string claim =
      fmt::format("the slope of the logarithms should be {}", bounds_text(test, lab::Unit::times));
  return check_along(material, test, claim, slope_outcome);
}

Checked check_value(const Material& material, const FindingTest& test) {
  const Observations all = material.observations(test.first, part_of(test));
  const lab::Unit unit = unit_of(test.field);
  const std::string what = field_title(test.field) + place_of(test.first);
  if (all.empty()) return nothing_known(what, what_is_missing(material, test.first, test.field));
  std::vector<Outcome> outcomes;
  for (const Case& each : cases_of(test, all)) {
    const Estimate estimate = estimate_of(each.members, test.field);
    Outcome outcome{Verdict::unjudged, case_name(test, each, several_groups(all)), "", {{"all", each.members}}};
    outcome.text = figure_text(estimate.value, unit) + figure_interval(estimate, unit);
    outcome.take(judge(estimate, bounds_of(test)));
    outcome.too_few = outcome.too_few && estimate.has_value();
    outcomes.push_back(std::move(outcome));
  }
  return checked_of(what, outcomes, bounds_text(test, unit));
}

}  // namespace lockstep::report
