// The test of curves: a whole curve against another, read from the runs' folders.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "chart/run_charts.h"
#include "records/statistics.h"
#include "report/checks.h"
#include "report/figures.h"

namespace lockstep::report {
namespace {

using lab::FindingTest;
using records::Curve;
using records::known;
using statistics::Estimate;

constexpr size_t kPlaces = 200;

/// The mean heights of two curves where both have values, and the mean distance between them.
struct Heights {
  double first = 0;
  double second = 0;
  double apart = 0;
};

/// Both lengths may differ: an epoch of fewer updates has another number of steps.
std::optional<Heights> heights_of(const Curve& first, const Curve& second) {
  if (first.size() < 2 || second.size() < 2) return std::nullopt;
  const double low = std::max(first.x.front(), second.x.front());
  const double high = std::min(first.x.back(), second.x.back());
  if (!(high > low)) return std::nullopt;
  Heights sums;
  for (size_t i = 0; i < kPlaces; ++i) {
    const double x = low + (high - low) * (static_cast<double>(i) + 0.5) / kPlaces;
    const double a = records::value_at(first, x);
    const double b = records::value_at(second, x);
    sums.first += a / kPlaces;
    sums.second += b / kPlaces;
    sums.apart += std::fabs(a - b) / kPlaces;
  }
  return sums;
}

std::map<int, Curve> curves_of(const FindingTest& test, const Case& side, RunFolders& folders) {
  std::map<int, Curve> curves;
  for (const Observation& member : side.members) {
    const records::RunRecord* record = folders.record(*member.run);
    if (record == nullptr) continue;
    const Curve all = chart::curve(*record, test.field, chart::over_of(test.over));
    Curve points = records::downsampled(all.x, all.y, all.x.size() + 2);
    if (points.size() > 1) curves.emplace(member.run->plan.repeat, std::move(points));
  }
  return curves;
}

/// Heights and distances by repeat; curves of the same seed are compared.
struct Compared {
  statistics::Repeats first;
  statistics::Repeats second;
  statistics::Repeats apart;  ///< relative to the second curve's height; of shares in points
};

Compared compare(const FindingTest& test, const Case& first, const Case& second, RunFolders& folders) {
  const std::map<int, Curve> others = curves_of(test, second, folders);
  const bool share = unit_of(test.field) == lab::Unit::share;
  Compared result;
  for (const auto& [repeat, curve] : curves_of(test, first, folders)) {
    const auto other = others.find(repeat);
    const auto heights = other == others.end() ? std::nullopt : heights_of(curve, other->second);
    if (!heights) continue;
    result.first[repeat] = heights->first;
    result.second[repeat] = heights->second;
    result.apart[repeat] = share ? heights->apart : heights->apart / std::fabs(heights->second);
  }
  return result;
}

Outcome curve_outcome(const FindingTest& test, const Case& first, const Case& second, RunFolders& folders) {
  Outcome outcome{Verdict::unjudged, describe(test.by, first.key), ""};
  const Compared curves = compare(test, first, second, folders);
  if (curves.apart.empty()) {
    outcome.text = "no two curves of the same seed";
    return outcome;
  }
  const lab::Unit unit = unit_of(test.field);
  if (test.is == "same") {
    const Estimate apart = statistics::mean_of(curves.apart);
    const std::string scale = unit == lab::Unit::share ? "points" : "%";
    outcome.text = fmt::format("{:.2f} {} apart on average", apart.value * 100, scale);
    if (apart.has_interval())
      outcome.text += fmt::format(" [{:.2f}, {:.2f}]", std::max(0.0, apart.low * 100), apart.high * 100);
    outcome.take(judge(apart, {-INFINITY, test.within}));
    return outcome;
  }
  const double a = statistics::mean_of(curves.first).value;
  const double b = statistics::mean_of(curves.second).value;
  const Estimate apart = unit == lab::Unit::share
                             ? statistics::difference_of(curves.first, curves.second)
                             : statistics::scaled(statistics::ratio_of(curves.first, curves.second), 1, -1);
  outcome.text = fmt::format("{} on average against {} ({}{})", figure_text(a, unit), figure_text(b, unit),
                             difference_text(a, b, unit), difference_interval(apart, unit));
  outcome.take(judge_difference(apart, test.is == "higher" ? "greater" : "less", test.within));
  return outcome;
}

}  // namespace

Checked check_curves(const Material& material, RunFolders& folders, const FindingTest& test) {
  const Observations first = material.observations(test.first);
  const Observations second = material.observations(test.second);
  const std::string first_name = describe(test.first, test.second);
  const std::string second_name = describe(test.second, test.first);
  const std::string what = fmt::format("Curve of {} over {}, {} against {}", field_title(test.field),
                                       field_title(test.over), first_name, second_name);
  for (const auto& [side, filter] : {std::pair{&first, &test.first}, std::pair{&second, &test.second}}) {
    if (side->empty()) return nothing_known(what, what_is_missing(material, *filter, test.field));
  }
  std::vector<Outcome> outcomes;
  const std::vector<Case> others = cases_by(second, test.by);
  for (const Case& one : cases_by(first, test.by)) {
    const Case* other = partner(others, one.key);
    if (other == nullptr) continue;
    outcomes.push_back(curve_outcome(test, one, *other, folders));
    outcomes.back().sides = {{first_name, one.members}, {second_name, other->members}};
  }
  if (outcomes.empty())
    return nothing_known(what, fmt::format("no two runs have the same {}", fmt::join(test.by, ", ")));
  const std::string within = limit_text(test.within, unit_of(test.field));
  return checked_of(what, outcomes,
                    test.is == "same" ? "should be at most " + within + " apart"
                                      : fmt::format("should be {} by more than {}", test.is, within));
}

}  // namespace lockstep::report
