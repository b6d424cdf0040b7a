// Estimates with their intervals, from the values of repeated runs. Means have Student's t interval; differences and
// ratios of two sides are paired where the sides share their repeats (the same seeds), otherwise Welch's. The interval
// of a ratio is Fieller's, so that it holds a number c exactly if the t test cannot tell the means of the first side
// from c times the second side's. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

namespace lockstep::statistics {

/// Level of all intervals and verdicts.
inline constexpr double kLevel = 0.95;

/// Values by the number of their repeat.
using Repeats = std::map<int, double>;

struct Estimate {
  double value = 0;  ///< NaN: nothing is known
  double low = 0;    ///< NaN: too few repeats for an interval; may be infinite
  double high = 0;
  double freedom = 0;   ///< degrees of freedom
  size_t repeats = 0;   ///< of the side with fewer
  double effect = 0;    ///< standardised: mean (or difference) over its standard deviation; NaN without one
  bool paired = false;  ///< both sides share their repeats

  [[nodiscard]] bool has_value() const;
  [[nodiscard]] bool has_interval() const;
};

/// Returns an estimate without error: a quantity that every run repeats.
Estimate exactly(double value);
Estimate mean_of(const Repeats& values, double level = kLevel);
/// Returns the mean of the first side less that of the second.
Estimate difference_of(const Repeats& first, const Repeats& second, double level = kLevel);
/// Returns the mean of the first side over that of the second.
Estimate ratio_of(const Repeats& first, const Repeats& second, double level = kLevel);
/// Returns factor * estimate + shift.
Estimate scaled(Estimate estimate, double factor, double shift = 0);

/// Returns the places of values that lie more than 3.5 robust deviations from the median (after Iglewicz and Hoaglin);
/// none among fewer than five values.
std::vector<size_t> outliers(std::span<const double> values);

/// Returns the slope of the line of least squares through the points; NaN with fewer than two different x.
double slope_of(std::span<const double> x, std::span<const double> y);

}  // namespace lockstep::statistics
