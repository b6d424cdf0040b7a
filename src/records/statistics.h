// Sums over columns in which NaN means "not known". Free functions; any thread.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <span>
#include <vector>

namespace lockstep::records {

inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

inline bool known(double value) { return std::isfinite(value); }

inline std::vector<double> known_of(std::span<const double> values) {
  std::vector<double> result;
  std::copy_if(values.begin(), values.end(), std::back_inserter(result), known);
  return result;
}

/// Returns the mean of the known values; NaN if none is known. The functions below do the same.
inline double mean(std::span<const double> values) {
  double sum = 0;
  size_t count = 0;
  for (const double value : values) {
    if (!known(value)) continue;
    sum += value;
    ++count;
  }
  return count == 0 ? kUnknown : sum / static_cast<double>(count);
}

inline double sum(std::span<const double> values) {
  double total = 0;
  for (const double value : values) total += known(value) ? value : 0;
  return total;
}

inline double largest(std::span<const double> values) {
  double result = kUnknown;
  for (const double value : values) {
    if (known(value) && !(value <= result)) result = value;
  }
  return result;
}

inline double smallest_above_zero(std::span<const double> values) {
  double result = kUnknown;
  for (const double value : values) {
    if (known(value) && value > 0 && !(value >= result)) result = value;
  }
  return result;
}

/// Returns the smallest value that at least the share `q` (0 to 1) of all values does not exceed.
inline double percentile(std::span<const double> values, double q) {
  std::vector<double> sorted = known_of(values);
  if (sorted.empty()) return kUnknown;
  const double rank = std::ceil(std::clamp(q, 0.0, 1.0) * static_cast<double>(sorted.size()));
  const size_t place = rank < 1 ? 0 : static_cast<size_t>(rank) - 1;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(place), sorted.end());
  return sorted[place];
}

inline double median(std::span<const double> values) { return percentile(values, 0.5); }

struct Curve {
  std::vector<double> x = {};
  std::vector<double> y = {};
  [[nodiscard]] size_t size() const { return x.size(); }
};

/// Returns the curve's height at x, on the line between its points; beyond its ends that of the end.
inline double value_at(const Curve& curve, double x) {
  const auto after = std::lower_bound(curve.x.begin(), curve.x.end(), x);
  if (after == curve.x.begin()) return curve.y.front();
  if (after == curve.x.end()) return curve.y.back();
  const auto i = static_cast<size_t>(after - curve.x.begin());
  const double width = curve.x[i] - curve.x[i - 1];
  return curve.y[i - 1] + (width > 0 ? (x - curve.x[i - 1]) / width : 1) * (curve.y[i] - curve.y[i - 1]);
}

/// Returns the points whose x and y are known, at most about `points` of them: the lowest and the highest of each
/// stretch of the curve, so that no spike is lost.
inline Curve downsampled(std::span<const double> x, std::span<const double> y, size_t points) {
  Curve all;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (!known(x[i]) || !known(y[i])) continue;
    all.x.push_back(x[i]);
    all.y.push_back(y[i]);
  }
  if (all.size() <= std::max<size_t>(points, 2)) return all;
  const size_t stretches = std::max<size_t>(points / 2, 1);
  Curve result;
  const auto add = [&](size_t i) {
    result.x.push_back(all.x[i]);
    result.y.push_back(all.y[i]);
  };
  for (size_t s = 0; s < stretches; ++s) {
    const size_t begin = s * all.size() / stretches;
    const size_t end = (s + 1) * all.size() / stretches;
    const auto [low, high] = std::minmax_element(all.y.begin() + static_cast<std::ptrdiff_t>(begin),
                                                 all.y.begin() + static_cast<std::ptrdiff_t>(end));
    const auto a = static_cast<size_t>(std::min(low, high) - all.y.begin());
    const auto b = static_cast<size_t>(std::max(low, high) - all.y.begin());
    add(a);
    if (b != a) add(b);
  }
  return result;
}

}  // namespace lockstep::records
