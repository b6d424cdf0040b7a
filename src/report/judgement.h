// Figures of cases with their intervals, and verdicts on claims about them. The repeats of a case are its sample: the
// workers or variations that a case pools are averaged within each repeat. A figure that equal settings repeat
// (lab::Varies::nothing) is exact, so one run decides a claim about it; any other needs two. Internal to this room.
// Free functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "report/findings.h"
#include "report/observations.h"
#include "statistics/decision.h"

namespace lockstep::report {

/// Returns the values by repeat. Repeats with fewer members than others are left out: their mean is over other runs.
statistics::Repeats repeats_of(const Observations& members, std::string_view field);
/// Returns whether runs with equal settings have the same value, so that a single one tells it.
bool is_exact(const Observations& members, std::string_view field);
/// Returns whether the workers of a run share the value by design (synchronous steps), so that one run tells it.
bool is_common(const Observations& workers, std::string_view field);

/// Returns the mean. Speed-up and efficiency contain the noise of their baseline.
statistics::Estimate estimate_of(const Observations& members, std::string_view field);
/// Returns the relative difference (first - second) / |second|; for shares first - second.
statistics::Estimate difference_of(const Observations& first, const Observations& second, std::string_view field);
statistics::Estimate ratio_of(const Observations& first, const Observations& second, std::string_view field);

/// Returns the interval to draw, within what the field can be: Student's interval of few repeats knows no limits. The
/// value itself without a finite interval.
std::pair<double, double> drawn_interval(const statistics::Estimate& estimate, std::string_view field);

/// A verdict and what a reader needs to know about it: "one run, no interval". Empty where it is clear.
struct Judgement {
  Verdict verdict = Verdict::unjudged;
  std::string note;
};
Judgement judge(const statistics::Estimate& estimate, const statistics::Region& region);
/// Judges whether the figure is outside the region.
Judgement judge_outside(const statistics::Estimate& estimate, const statistics::Region& region);

/// " [-61, -38]", in the units that `difference_text` prints; empty for exact figures and without an interval.
std::string difference_interval(const statistics::Estimate& difference, lab::Unit unit);
/// " [1.38 s, 1.46 s]".
std::string figure_interval(const statistics::Estimate& estimate, lab::Unit unit);
/// " [0.35, 0.41]".
std::string plain_interval(const statistics::Estimate& estimate);

}  // namespace lockstep::report
