#include "report/judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "records/statistics.h"
#include "report/figures.h"

namespace lockstep::report {
namespace {

using lab::RunResult;
using statistics::Decision;
using statistics::Estimate;
using statistics::Region;
using statistics::Repeats;

constexpr double kManyTimes = 10;  // beyond, `difference_text` says "12 times as much"

/// Returns whether a measured quantity, not the plan, ended the run.
bool ended_by_result(const RunResult& run) {
  const auto set = [&](std::string_view name) { return number_of(lab::value_of(run.plan.settings, name)) > 0; };
  return set("stop-loss") || set("stop-accuracy") || set("seconds");
}

/// Returns whether all workers of a run make the same steps with the same parameters.
bool in_step(const RunResult& run) {
  return run.text("mode") != "async" && run.text("aggregate").empty() && run.plan.cluster.faults.empty();
}

/// Returns the baseline's rates by repeat, and the members' cores in those of the baseline, if all members share them.
struct Baseline {
  Repeats rates;
  double cores = 0;
};

Baseline baseline_of(const Observations& members) {
  Baseline all;
  for (const Observation& member : members) {
    if (member.derived == nullptr) return {};
    const Repeats rates = member.derived->baseline(*member.run);
    const double cores = member.derived->cores(*member.run);
    if (all.rates.empty()) all = {rates, cores};
    if (rates != all.rates || cores != all.cores) return {};
  }
  return all;
}

Estimate unknown() { return {.value = records::kUnknown, .low = records::kUnknown, .high = records::kUnknown}; }

double mean_of(const Observations& members, std::string_view field) {
  return statistics::mean_of(repeats_of(members, field)).value;
}

bool one_tells(const Observations& members, std::string_view field) {
  return is_exact(members, field) && repeats_of(members, field).size() == 1;
}

/// Compares two sides of which one is zero on average.
Estimate from_nothing(const Estimate& difference) {
  if (difference.low == 0 && difference.high == 0) return statistics::exactly(0);
  Estimate result = difference;
  result.value = difference.value == 0 ? 0 : std::copysign(INFINITY, difference.value);
  if (!difference.has_interval()) return result;
  result.low = difference.low > 0 ? INFINITY : -INFINITY;
  result.high = difference.high < 0 ? -INFINITY : INFINITY;
  return result;
}

std::string end_text(double value, int digits) {
  if (std::isinf(value)) return value < 0 ? "-∞" : "+∞";
  return signed_text(value, digits);
}

/// Returns whether the interval is no more than rounding.
bool is_point(const Estimate& estimate) {
  return estimate.high - estimate.low <= 1e-9 * (1 + std::fabs(estimate.value));
}

Judgement judged(Decision decision, const Estimate& estimate, const Region& region) {
  switch (decision) {
    case Decision::inside:
      return {Verdict::holds, ""};
    case Decision::outside:
      return {Verdict::fails, ""};
    case Decision::no_interval:
      return {Verdict::unjudged, "one run, no interval"};
    case Decision::no_value:
      return {Verdict::unjudged, "not known"};
    case Decision::undecided:
      break;
  }
  std::string note = "within noise";
  if (records::known(estimate.effect)) note += fmt::format(", effect size {:.1f}", estimate.effect);
  const int repeats = statistics::repeats_to_decide(estimate, region);
  if (repeats > statistics::kMostRepeats) {
    note += fmt::format(", more than {} repeats would be needed", statistics::kMostRepeats);
  } else if (repeats > 0) {
    note += fmt::format(", about {} repeats would decide it", std::max<int>(repeats, estimate.repeats + 1));
  }
  return {Verdict::noise, note};
}

}  // namespace

Repeats repeats_of(const Observations& members, std::string_view field) {
  std::map<int, std::vector<double>> all;
  for (const Observation& member : undisturbed(members, field)) {
    const double value = member.number(field);
    if (records::known(value)) all[member.run->plan.repeat].push_back(value);
  }
  size_t most = 0;
  for (const auto& [repeat, values] : all) most = std::max(most, values.size());
  Repeats repeats;
  for (const auto& [repeat, values] : all) {
    if (values.size() == most) repeats[repeat] = records::mean(values);
  }
  return repeats;
}

bool is_exact(const Observations& members, std::string_view field) {
  const lab::FieldDef* def = lab::find_field(field);
  if (def == nullptr) return true;  // a setting
  if (def->varies != lab::Varies::nothing) return false;
  if (def->unit == lab::Unit::bytes) return true;
  return std::none_of(members.begin(), members.end(), [](const Observation& member) {
    return ended_by_result(*member.run) || (member.role != nullptr && !in_step(*member.run));
  });
}

bool is_common(const Observations& workers, std::string_view field) {
  const lab::FieldDef* def = lab::find_field(field);
  return def != nullptr && def->varies != lab::Varies::time &&
         std::all_of(workers.begin(), workers.end(), [](const Observation& o) { return in_step(*o.run); });
}

Estimate estimate_of(const Observations& members, std::string_view field) {
  if (field == "speed_up" || field == "efficiency") {
    const Baseline baseline = baseline_of(members);
    const Estimate ratio = statistics::ratio_of(repeats_of(members, "examples_per_second"), baseline.rates);
    if (ratio.has_value()) return statistics::scaled(ratio, field == "speed_up" ? 1 : 1 / baseline.cores);
  }
  return one_tells(members, field) ? statistics::exactly(mean_of(members, field))
                                   : statistics::mean_of(repeats_of(members, field));
}

Estimate difference_of(const Observations& first, const Observations& second, std::string_view field) {
  const bool exact = one_tells(first, field) && one_tells(second, field);
  const double a = mean_of(first, field);
  const double b = mean_of(second, field);
  if (!records::known(a) || !records::known(b)) return unknown();
  const bool share = unit_of(field) == lab::Unit::share;
  if (exact) return statistics::exactly(share || a == b ? a - b : (a - b) / std::fabs(b));
  if (share || b == 0) {
    const Estimate apart = statistics::difference_of(repeats_of(first, field), repeats_of(second, field));
    return share ? apart : from_nothing(apart);
  }
  const double sign = b < 0 ? -1 : 1;
  return statistics::scaled(statistics::ratio_of(repeats_of(first, field), repeats_of(second, field)), sign, -sign);
}

Estimate ratio_of(const Observations& first, const Observations& second, std::string_view field) {
  const double b = mean_of(second, field);
  if (b == 0) return unknown();
  if (one_tells(first, field) && one_tells(second, field)) return statistics::exactly(mean_of(first, field) / b);
  return statistics::ratio_of(repeats_of(first, field), repeats_of(second, field));
}

std::pair<double, double> drawn_interval(const Estimate& estimate, std::string_view field) {
  if (!std::isfinite(estimate.low) || !std::isfinite(estimate.high)) return {estimate.value, estimate.value};
  const double least = estimate.value >= 0 ? 0 : -INFINITY;
  const bool share = unit_of(field) == lab::Unit::share && field != "efficiency";
  return {std::max(least, estimate.low), std::min<double>(share ? 1 : INFINITY, estimate.high)};
}

Judgement judge(const Estimate& estimate, const Region& region) {
  return judged(statistics::decide(estimate, region), estimate, region);
}

Judgement judge_outside(const Estimate& estimate, const Region& region) {
  return judged(statistics::opposite(statistics::decide(estimate, region)), estimate, region);
}

std::string difference_interval(const Estimate& difference, lab::Unit unit) {
  if (!difference.has_interval() || is_point(difference) || std::isinf(difference.value)) return "";
  if (unit != lab::Unit::share) {
    const double times = difference.value + 1;
    if (times >= kManyTimes) return fmt::format(" [{:.3g}, {:.3g}]", difference.low + 1, difference.high + 1);
    if (times > 0 && times <= 1 / kManyTimes) {
      const double least = difference.low + 1;
      return fmt::format(" [{:.3g}, {}]", 1 / (difference.high + 1),
                         least > 0 ? fmt::format("{:.3g}", 1 / least) : "∞");
    }
  }
  const int digits = unit == lab::Unit::share ? 2 : std::fabs(difference.value) < 0.1 ? 1 : 0;
  return fmt::format(" [{}, {}]", end_text(difference.low * 100, digits), end_text(difference.high * 100, digits));
}

std::string figure_interval(const Estimate& estimate, lab::Unit unit) {
  if (!estimate.has_interval() || is_point(estimate)) return "";
  // No field is negative, but Student's interval of few repeats may be.
  const double low = estimate.value >= 0 ? std::max(0.0, estimate.low) : estimate.low;
  const std::string high = std::isinf(estimate.high) ? "∞" : figure_text(estimate.high, unit);
  return fmt::format(" [{}, {}]", std::isinf(low) ? "-∞" : figure_text(low, unit), high);
}

std::string plain_interval(const Estimate& estimate) {
  if (!estimate.has_interval() || is_point(estimate)) return "";
  return fmt::format(" [{:.2f}, {:.2f}]", estimate.low, estimate.high);
}

}  // namespace lockstep::report
