#include "statistics/decision.h"

#include <algorithm>
#include <cmath>

#include "statistics/student.h"

namespace lockstep::statistics {

Decision decide(const Estimate& estimate, const Region& region) {
  if (!estimate.has_value()) return Decision::no_value;
  if (!estimate.has_interval()) return Decision::no_interval;
  // An infinite end belongs to the region.
  const auto beyond = [&](double value, double end) { return region.open ? value > end : value >= end; };
  const bool above = region.low == -INFINITY || beyond(estimate.low, region.low);
  const bool below = region.high == INFINITY || beyond(-estimate.high, -region.high);
  if (above && below) return Decision::inside;
  const bool outside = region.open ? estimate.high <= region.low || estimate.low >= region.high
                                   : estimate.high < region.low || estimate.low > region.high;
  return outside ? Decision::outside : Decision::undecided;
}

Decision opposite(Decision decision) {
  if (decision == Decision::inside) return Decision::outside;
  return decision == Decision::outside ? Decision::inside : decision;
}

int repeats_to_decide(const Estimate& estimate, const Region& region) {
  if (!estimate.has_interval() || estimate.repeats < 2 || !std::isfinite(estimate.low) ||
      !std::isfinite(estimate.high)) {
    return 0;
  }
  const double half = std::max(estimate.high - estimate.value, estimate.value - estimate.low);
  const double distance = std::min(std::fabs(estimate.value - region.low), std::fabs(estimate.value - region.high));
  // With n repeats the interval shrinks with the quantile of t and the root of n. The degrees of freedom of n repeats
  // are n - 1 for one sample and pairs; for two samples this errs on the side of more repeats.
  const double now = t_quantile((1 + kLevel) / 2, estimate.freedom) / std::sqrt(static_cast<double>(estimate.repeats));
  for (int n = 2; n <= kMostRepeats; ++n) {
    const double then = t_quantile((1 + kLevel) / 2, n - 1) / std::sqrt(static_cast<double>(n));
    if (half * then / now < distance) return n;
  }
  return kMostRepeats + 1;
}

}  // namespace lockstep::statistics
