// Mean, quantiles and maximum of a column over any number of samples, in bounded memory: a histogram with steps of 1 %.
// Each sample is weighted by its seconds. For one thread.
#pragma once

#include <cstdint>
#include <map>

namespace lockstep::observe {

class ColumnStatistics {
 public:
  /// Ignores NaN. A sample too short to be a peak (`brief`) does not count for the maximum.
  void add(double value, double seconds, bool brief);

  /// NaN if there was no value.
  [[nodiscard]] double mean() const;
  /// q from 0 to 1.
  [[nodiscard]] double quantile(double q) const;
  [[nodiscard]] double max() const;

 private:
  double seconds_ = 0;
  double sum_ = 0;
  double least_ = 0;
  double largest_ = 0;
  double peak_ = 0;
  bool has_peak_ = false;
  std::map<int16_t, double> places_;  ///< seconds by histogram step
};

}  // namespace lockstep::observe
