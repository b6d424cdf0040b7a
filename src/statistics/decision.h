// Decides claims about estimates: the claim holds if the whole interval lies where it says, fails if no part does, and
// is undecided otherwise. With intervals at 95 %, a claim about one bound is wrong in at most 2.5 % of decisions. Pure
// functions; any thread.
#pragma once

#include <cstdint>
#include <limits>

#include "statistics/estimate.h"

namespace lockstep::statistics {

/// The values that a claim allows, with their ends (closed) or without them (open).
struct Region {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool open = false;
};

enum class Decision : uint8_t {
  inside,
  outside,
  undecided,
  no_interval,  ///< too few repeats
  no_value      ///< nothing was measured
};

Decision decide(const Estimate& estimate, const Region& region);
/// Returns the decision about all values outside the region.
Decision opposite(Decision decision);

/// More repeats than this are not worth counting.
inline constexpr int kMostRepeats = 100;
/// Returns about how many repeats would decide a claim if they scatter like these; more than kMostRepeats stands for
/// any larger number, 0 for unknown.
int repeats_to_decide(const Estimate& estimate, const Region& region);

}  // namespace lockstep::statistics
