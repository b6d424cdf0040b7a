// Parses numbers with a unit: "10s", "1gbit", "0.1%". Free functions; any thread.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::emulate {

struct Unit {
  std::string_view name;  ///< in small letters; "": no unit
  double factor = 1;
};

/// Returns the number in the base unit, or nothing if the text is invalid. Ignores case.
std::optional<double> parse_quantity(std::string_view text, std::initializer_list<Unit> units);

std::optional<double> parse_seconds(std::string_view text);  ///< s (or nothing), ms, us, m or min
std::optional<double> parse_share(std::string_view text);    ///< 25%, or 0.25

/// Removes blanks at both ends.
std::string_view trimmed(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace lockstep::emulate
