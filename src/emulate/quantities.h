// Numbers with a unit, as people write them: "10s", "1gbit", "0.1%". Free functions; any thread.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::emulate {

struct Unit {
  std::string_view name;  ///< in small letters; "" stands for none
  double factor = 1;
};

/// The number in the base unit, or nothing where the text is no such number. Capital letters do not matter.
std::optional<double> parse_quantity(std::string_view text, std::initializer_list<Unit> units);

std::optional<double> parse_seconds(std::string_view text);  ///< s (or nothing), ms, us, m or min
std::optional<double> parse_share(std::string_view text);    ///< 25%, or 0.25

/// Without what is blank at both ends.
std::string_view trimmed(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace lockstep::emulate
