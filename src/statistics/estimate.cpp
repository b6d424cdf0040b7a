#include "statistics/estimate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "records/statistics.h"
#include "statistics/student.h"

namespace lockstep::statistics {
namespace {

using records::known;
using records::kUnknown;

struct Moments {
  double mean = 0;
  double variance = 0;  ///< of a single value
  double count = 0;
};

std::vector<double> values_of(const Repeats& repeats) {
  std::vector<double> values;
  for (const auto& [repeat, value] : repeats) {
    if (known(value)) values.push_back(value);
  }
  return values;
}

Moments moments_of(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  // Equal values scatter by nothing, not by what the mean is rounded.
  const bool equal = std::all_of(values.begin(), values.end(), [&](double value) { return value == values[0]; });
  if (equal && count > 1) return {values[0], 0, count};
  const double mean = records::mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, count > 1 ? squares / (count - 1) : kUnknown, count};
}

/// Values of both sides in the repeats that both have.
struct Pairs {
  std::vector<double> first;
  std::vector<double> second;
};

Pairs pairs_of(const Repeats& first, const Repeats& second) {
  Pairs pairs;
  for (const auto& [repeat, value] : first) {
    const auto other = second.find(repeat);
    if (other == second.end() || !known(value) || !known(other->second)) continue;
    pairs.first.push_back(value);
    pairs.second.push_back(other->second);
  }
  return pairs;
}

double covariance(const Pairs& pairs, const Moments& first, const Moments& second) {
  double sum = 0;
  for (size_t i = 0; i < pairs.first.size(); ++i)
    sum += (pairs.first[i] - first.mean) * (pairs.second[i] - second.mean);
  return sum / static_cast<double>(pairs.first.size() - 1);
}

/// Two sides: their means, and the variances of these means.
struct Sides {
  Moments first;
  Moments second;
  double first_error = 0;
  double second_error = 0;
  double common_error = 0;
  bool paired = false;

  /// Returns the degrees of freedom of first - factor * second.
  [[nodiscard]] double freedom(double factor) const {
    if (paired) return first.count - 1;
    const double other = factor * factor * second_error;
    const double all = first_error + other;
    if (!(all > 0)) return std::min(first.count, second.count) - 1;
    return all * all / (first_error * first_error / (first.count - 1) + other * other / (second.count - 1));
  }
  [[nodiscard]] double error(double factor) const {
    return std::max(0.0, first_error + factor * factor * second_error - 2 * factor * common_error);
  }
};

Sides sides_of(const Repeats& first, const Repeats& second) {
  Sides sides;
  const Pairs pairs = pairs_of(first, second);
  sides.paired = pairs.first.size() >= 2;
  sides.first = moments_of(sides.paired ? pairs.first : values_of(first));
  sides.second = moments_of(sides.paired ? pairs.second : values_of(second));
  sides.first_error = sides.first.variance / sides.first.count;
  sides.second_error = sides.second.variance / sides.second.count;
  if (sides.paired) sides.common_error = covariance(pairs, sides.first, sides.second) / sides.first.count;
  return sides;
}

Estimate begun(const Sides& sides, double value) {
  Estimate estimate{.value = value, .low = kUnknown, .high = kUnknown, .effect = kUnknown};
  estimate.repeats = static_cast<size_t>(std::min(sides.first.count, sides.second.count));
  estimate.paired = sides.paired;
  return estimate;
}

/// Returns the standardised effect of first - factor * second.
double effect_of(const Sides& sides, double factor) {
  const double deviation = sides.paired ? std::sqrt(sides.error(factor) * sides.first.count)
                                        : std::sqrt((sides.first.variance + sides.second.variance) / 2);
  const double apart = sides.first.mean - factor * sides.second.mean;
  return apart == 0 ? 0 : apart / deviation;
}

/// Solves Fieller's quadratic equation: the ratios that the t test cannot tell from the measured one.
void add_fieller(const Sides& sides, double level, Estimate& estimate) {
  estimate.freedom = sides.freedom(estimate.value);
  const double t = t_quantile((1 + level) / 2, estimate.freedom);
  const double m1 = sides.first.mean;
  const double m2 = sides.second.mean;
  const auto [s11, s22, s12] = std::tuple(sides.first_error, sides.second_error, sides.common_error);
  const double leading = m2 * m2 - t * t * s22;
  if (!(leading > 0)) {  // the second side may be zero
    estimate.low = -std::numeric_limits<double>::infinity();
    estimate.high = std::numeric_limits<double>::infinity();
    return;
  }
  const double middle = (m1 * m2 - t * t * s12) / leading;
  const double inside = m2 * m2 * s11 - 2 * m1 * m2 * s12 + m1 * m1 * s22 - t * t * (s11 * s22 - s12 * s12);
  const double half = t * std::sqrt(std::max(0.0, inside)) / leading;
  estimate.low = half > 0 ? middle - half : estimate.value;
  estimate.high = half > 0 ? middle + half : estimate.value;
}

}  // namespace

bool Estimate::has_value() const { return !std::isnan(value); }
bool Estimate::has_interval() const { return !std::isnan(low) && !std::isnan(high); }

Estimate exactly(double value) {
  return {.value = value, .low = value, .high = value, .freedom = 0, .repeats = 1, .effect = kUnknown};
}

Estimate mean_of(const Repeats& repeats, double level) {
  const Moments moments = moments_of(values_of(repeats));
  Estimate estimate{.value = moments.mean, .low = kUnknown, .high = kUnknown, .effect = kUnknown};
  estimate.repeats = static_cast<size_t>(moments.count);
  if (moments.count < 2) return estimate;
  estimate.freedom = moments.count - 1;
  const double half = t_quantile((1 + level) / 2, estimate.freedom) * std::sqrt(moments.variance / moments.count);
  estimate.low = moments.mean - half;
  estimate.high = moments.mean + half;
  estimate.effect = moments.mean == 0 ? 0 : moments.mean / std::sqrt(moments.variance);
  return estimate;
}

Estimate difference_of(const Repeats& first, const Repeats& second, double level) {
  const Sides sides = sides_of(first, second);
  Estimate estimate = begun(sides, sides.first.mean - sides.second.mean);
  if (estimate.repeats < 2) return estimate;
  estimate.freedom = sides.freedom(1);
  const double half = t_quantile((1 + level) / 2, estimate.freedom) * std::sqrt(sides.error(1));
  estimate.low = estimate.value - half;
  estimate.high = estimate.value + half;
  estimate.effect = effect_of(sides, 1);
  return estimate;
}

Estimate ratio_of(const Repeats& first, const Repeats& second, double level) {
  const Sides sides = sides_of(first, second);
  const bool zeros = sides.second.mean == 0;
  Estimate estimate = begun(sides, zeros ? kUnknown : sides.first.mean / sides.second.mean);
  if (zeros || estimate.repeats < 2) return estimate;
  add_fieller(sides, level, estimate);
  estimate.effect = effect_of(sides, 1);
  return estimate;
}

Estimate scaled(Estimate estimate, double factor, double shift) {
  const double low = estimate.low * factor + shift;
  const double high = estimate.high * factor + shift;
  estimate.value = estimate.value * factor + shift;
  estimate.low = std::isnan(low) || std::isnan(high) ? kUnknown : std::min(low, high);
  estimate.high = std::isnan(low) || std::isnan(high) ? kUnknown : std::max(low, high);
  return estimate;
}

std::vector<size_t> outliers(std::span<const double> values) {
  constexpr size_t kFewest = 5;
  constexpr double kFar = 3.5;
  constexpr double kDeviation = 1.4826;  // standard deviations in a median absolute deviation of normal values
  const auto median = [](std::vector<double> all) {
    std::sort(all.begin(), all.end());
    const size_t half = all.size() / 2;
    return all.size() % 2 == 1 ? all[half] : (all[half - 1] + all[half]) / 2;
  };
  if (values.size() < kFewest) return {};
  const double middle = median({values.begin(), values.end()});
  std::vector<double> apart;
  for (const double value : values) apart.push_back(std::fabs(value - middle));
  const double deviation = kDeviation * median(apart);
  std::vector<size_t> places;
  for (size_t i = 0; i < values.size() && deviation > 0; ++i) {
    if (apart[i] > kFar * deviation) places.push_back(i);
  }
  return places;
}

double slope_of(std::span<const double> x, std::span<const double> y) {
  const double x_mean = records::mean(x);
  const double y_mean = records::mean(y);
  double products = 0;
  double squares = 0;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    products += (x[i] - x_mean) * (y[i] - y_mean);
    squares += (x[i] - x_mean) * (x[i] - x_mean);
  }
  return squares > 0 ? products / squares : kUnknown;
}

}  // namespace lockstep::statistics
