#include "records/format.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>

#include "records/statistics.h"

namespace lockstep::records {

namespace {

/// Largest number shown; damaged files hold numbers that no line has room for.
constexpr double kMost = 1e15;

std::string huge(double number) { return fmt::format("{:.3g}", number); }

}  // namespace

std::string percent_text(double percent) {
  if (!known(percent)) return "?";
  if (std::fabs(percent) >= kMost) return huge(percent) + " %";
  return fmt::format("{:.{}f} %", percent, std::fabs(percent) >= 9.95 || percent == 0 ? 0 : 1);
}

std::string share_text(double share) { return percent_text(share * 100); }

std::string time_text(double seconds) {
  if (!known(seconds)) return "?";
  if (std::fabs(seconds) >= kMost) return huge(seconds) + " s";
  const bool whole = seconds >= 0.9995;
  const bool tiny = seconds < 0.0000995;
  const double number = whole ? seconds : tiny ? seconds * 1e6 : seconds * 1e3;
  const int digits = number >= 99.95 || seconds == 0 ? 0 : number >= 9.995 || whole || tiny ? 1 : 2;
  return fmt::format("{:.{}f} {}", number, digits, whole ? "s" : tiny ? "us" : "ms");
}

std::string amount_text(double bytes) {
  if (!known(bytes)) return "?";
  if (std::fabs(bytes) >= kMost * kMost) return huge(bytes) + " B";
  constexpr std::array<const char*, 5> kUnits{"B", "kB", "MB", "GB", "TB"};
  size_t unit = 0;
  while (std::fabs(bytes) >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 99.95 ? 0 : 1, kUnits[unit]);
}

std::string speed_text(double bytes_per_second) {
  return known(bytes_per_second) ? amount_text(bytes_per_second) + "/s" : "?";
}

std::string count_text(double count) {
  if (!known(count)) return "?";
  if (std::fabs(count) >= kMost) return huge(count);
  std::string digits = fmt::format("{:.0f}", count);
  const size_t sign = count < 0 ? 1 : 0;
  for (size_t i = digits.size(); i > 3 + sign; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string times_text(double factor) {
  if (std::fabs(factor) >= kMost) return huge(factor) + " times";
  return known(factor) ? fmt::format("{:.{}f} times", factor, factor >= 9.95 ? 0 : factor >= 0.995 ? 1 : 2) : "?";
}

}  // namespace lockstep::records
