#include "emulate/quantities.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace lockstep::emulate {

std::optional<double> parse_quantity(std::string_view text, std::initializer_list<Unit> units) {
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || !std::isfinite(number)) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(stop - text.data()));
  std::string unit(trimmed(text));
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const auto found = std::find_if(units.begin(), units.end(), [&](const Unit& known) { return known.name == unit; });
  if (found == units.end()) return std::nullopt;
  return number * found->factor;
}

std::optional<double> parse_seconds(std::string_view text) {
  return parse_quantity(text, {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"m", 60}, {"min", 60}});
}

std::optional<double> parse_share(std::string_view text) { return parse_quantity(text, {{"", 1}, {"%", 0.01}}); }

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

}  // namespace lockstep::emulate
