// Numbers on the axes of drawn charts, as chart.js has them: ticks, scales, values as text. Free functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::chart {

struct Tick {
  double value = 0;
  std::string text;
};

/// Whether numbers differ by rounding at most: ticks between them would have no end.
bool are_same(double a, double b);

/// "1.42 s", "91.8 %", "12,345", "3.1 MB/s"; the unit is Axis::unit.
std::string value_text(double value, std::string_view unit);

/// Returns about `count` ticks at round values within the range. `whole`: numbers between whole ones mean nothing.
std::vector<Tick> linear_ticks(double low, double high, int count, std::string_view unit, bool whole = false);
std::vector<Tick> log_ticks(double low, double high, int count, std::string_view unit);

/// Places values between two positions.
class Scale {
 public:
  Scale() = default;
  Scale(std::pair<double, double> domain, double begin, double end, bool log);
  [[nodiscard]] double operator()(double value) const;
  [[nodiscard]] bool log() const { return log_; }
  [[nodiscard]] std::pair<double, double> domain() const { return domain_; }
  /// Returns whether the value has a place: on a logarithmic axis, only positive ones have.
  [[nodiscard]] bool takes(double value) const;

 private:
  std::pair<double, double> domain_{0, 1};
  double begin_ = 0;
  double end_ = 1;
  bool log_ = false;
};

}  // namespace lockstep::chart
