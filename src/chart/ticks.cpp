#include "chart/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep::chart {
namespace {

/// How numbers of a unit are written: multiplied by the factor, followed by the suffix.
struct UnitScale {
  double factor = 1;
  std::string suffix;
};

UnitScale with_prefix(double size, const std::string& space, std::string_view unit) {
  constexpr std::array<std::pair<double, const char*>, 4> kPrefixes{{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  for (const auto& [from, letter] : kPrefixes) {
    if (size >= from) return {1 / from, fmt::format("{}{}{}", space, letter, unit)};
  }
  return {1, unit.empty() ? "" : fmt::format("{}{}", space, unit)};
}

UnitScale unit_scale(std::string_view unit, double largest) {
  const double size = std::isfinite(largest) ? std::fabs(largest) : 0;
  if (unit == "share") return {100, " %"};
  if (unit == "percent") return {1, " %"};
  if (unit == "x") return {1, " ×"};
  if (unit == "s") {
    if (size >= 3 * 3600) return {1.0 / 3600, " h"};
    if (size >= 600) return {1.0 / 60, " min"};
    if (size >= 1 || size == 0) return {1, " s"};
    return size >= 1e-3 ? UnitScale{1e3, " ms"} : UnitScale{1e6, " µs"};
  }
  if (unit == "B" || unit == "B/s") return with_prefix(size, " ", unit);
  return size >= 1e5 ? with_prefix(size, "", "") : UnitScale{};
}

std::string grouped(double value, int digits) {
  std::string text = fmt::format("{:.{}f}", std::fabs(value), digits);
  const size_t whole = std::min(text.find('.'), text.size());
  for (size_t place = whole; place > 3; place -= 3) text.insert(place - 3, ",");
  const bool zero = text.find_first_not_of("0.,") == std::string::npos;
  return value < 0 && !zero ? "−" + text : text;
}

/// A quarter more ticks than asked for are better than half as many.
constexpr double kSomeMore = 1.25;

double nice_step(double range, int count) {
  const double raw = range / std::max(count, 1);
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double step : {1.0, 2.0, 2.5, 5.0}) {
    if (raw <= step * power * kSomeMore) return step * power;
  }
  return 10 * power;
}

}  // namespace

bool are_same(double a, double b) {
  constexpr double kRounding = 1e-9;
  return std::fabs(a - b) <= kRounding * std::max(std::fabs(a), std::fabs(b));
}

std::string value_text(double value, std::string_view unit) {
  if (!std::isfinite(value)) return "–";
  if (unit.empty() && value == std::floor(value) && std::fabs(value) < 1e9) return grouped(value, 0);
  const auto [factor, suffix] = unit_scale(unit, value);
  const double number = value * factor;
  const double size = std::fabs(number);
  if (number == 0) return "0" + suffix;
  if (size < 1e-4 || size >= 1e7) return fmt::format("{:.2e}", number) + suffix;
  const int digits = std::clamp(3 - static_cast<int>(std::floor(std::log10(size))), 0, 6);
  std::string text = grouped(number, digits);
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text + suffix;
}

std::vector<Tick> linear_ticks(double low, double high, int count, std::string_view unit, bool whole) {
  const auto [factor, suffix] = unit_scale(unit, std::max(std::fabs(low), std::fabs(high)));
  const double from = low * factor;
  const double to = high * factor;
  std::vector<Tick> ticks;
  if (are_same(from, to) || !(to > from) || !std::isfinite(to - from)) return ticks;
  const double step = std::max(nice_step(to - from, count), whole && factor == 1 ? 1.0 : 0.0);
  int digits = 0;
  while (digits < 8 && std::fabs(std::round(step * std::pow(10, digits)) - step * std::pow(10, digits)) > 1e-6)
    ++digits;
  for (double i = std::ceil(from / step - 1e-9); i * step <= to + step * 1e-9; ++i) {
    const bool apart = suffix.starts_with(' ');
    ticks.push_back({i * step / factor, i == 0 ? "0" + (apart ? suffix : "") : grouped(i * step, digits) + suffix});
  }
  return ticks;
}

std::vector<Tick> log_ticks(double low, double high, int count, std::string_view unit) {
  std::vector<Tick> ticks;
  const double factor = unit_scale(unit, 1).factor;
  const double from = std::log10(low * factor);
  const double to = std::log10(high * factor);
  if (!std::isfinite(from) || !std::isfinite(to)) return ticks;
  std::vector<double> steps{1};
  if (to - from < 1.3) {
    steps = {1, 2, 3, 5, 7};
  } else if (to - from < 2.6) {
    steps = {1, 2, 5};
  }
  const int every = std::max(1, static_cast<int>(std::ceil((to - from) / std::max(count, 2))));
  for (int power = static_cast<int>(std::floor(from)); power <= static_cast<int>(std::ceil(to)); ++power) {
    if (steps.size() == 1 && power % every != 0) continue;
    for (const double step : steps) {
      const double value = step * std::pow(10, power) / factor;
      if (value >= low * 0.9999 && value <= high * 1.0001) ticks.push_back({value, value_text(value, unit)});
    }
  }
  return ticks;
}

Scale::Scale(std::pair<double, double> domain, double begin, double end, bool log)
    : domain_(domain), begin_(begin), end_(end), log_(log) {}

double Scale::operator()(double value) const {
  const auto bent = [this](double number) { return log_ ? std::log(number) : number; };
  const double width = bent(domain_.second) - bent(domain_.first);
  return begin_ + (bent(value) - bent(domain_.first)) / (width == 0 ? 1 : width) * (end_ - begin_);
}

bool Scale::takes(double value) const { return std::isfinite(value) && (!log_ || value > 0); }

}  // namespace lockstep::chart
