#include "terminal/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace lockstep::terminal {
namespace {

/// Returns whether a word is a number and the next word its unit.
bool is_quantity(std::string_view word, std::string_view next) {
  constexpr std::array<std::string_view, 14> kUnits{"%",  "s",  "ms",  "us",   "B",    "kB",   "MB",
                                                    "GB", "TB", "B/s", "kB/s", "MB/s", "GB/s", "Gbit/s"};
  next = next.substr(0, next.find(' '));
  next = next.substr(0, next.find_last_not_of(".,;:)") + 1);
  return !word.empty() && word.back() >= '0' && word.back() <= '9' &&
         std::find(kUnits.begin(), kUnits.end(), next) != kUnits.end();
}

}  // namespace

std::string grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string rate_text(double per_second) {
  if (per_second < 1000) return fmt::format("{:.1f}", per_second);
  return grouped(static_cast<uint64_t>(std::llround(per_second)));
}

std::string percent(double fraction, int digits) { return fmt::format("{:.{}f} %", fraction * 100, digits); }

std::string scaled(double number, std::string_view unit) {
  constexpr std::array<const char*, 5> kPrefixes{"", "k", "M", "G", "T"};
  size_t prefix = 0;
  while (std::fabs(number) >= 999.5 && prefix + 1 < kPrefixes.size()) {
    number /= 1000;
    ++prefix;
  }
  const int digits = prefix == 0 || number >= 99.95 ? 0 : 1;
  const std::string full_unit = kPrefixes[prefix] + std::string(unit);
  return fmt::format("{:.{}f}{}{}", number, digits, full_unit.empty() ? "" : " ", full_unit);
}

std::string bytes_text(uint64_t bytes) { return scaled(static_cast<double>(bytes), "B"); }

std::string duration_text(double seconds) {
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string loss_text(double loss) {
  const bool plain = loss == 0 || (std::fabs(loss) >= 0.00095 && std::fabs(loss) < 1e5);
  return plain ? fmt::format("{:.4f}", loss) : fmt::format("{:.2e}", loss);
}

std::string counted(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", grouped(count), noun, count == 1 ? "" : "s");
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  bool escape = false;
  for (const char c : text) {
    if (c == '\x1b') escape = true;
    const bool continuation = (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
    if (!escape && !continuation) ++width;
    if (escape && c == 'm') escape = false;
  }
  return width;
}

std::string clipped(std::string_view text, size_t width) {
  std::string result;
  size_t used = 0;
  bool escape = false;
  for (const char c : text) {
    if (c == '\x1b') escape = true;
    const bool continuation = (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
    if (!escape && !continuation) ++used;
    if (escape || used <= width) result += c;
    if (escape && c == 'm') escape = false;
  }
  return result;
}

std::string padded_left(std::string_view text, size_t width) {
  const size_t used = display_width(text);
  return std::string(used < width ? width - used : 0, ' ').append(text);
}

std::string padded_right(std::string_view text, size_t width) {
  const size_t used = display_width(text);
  return std::string(text) + std::string(used < width ? width - used : 0, ' ');
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

std::vector<std::string> wrapped(std::string_view text, size_t width) {
  std::vector<std::string> lines{""};
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find(' ', begin), text.size());
    if (end < text.size() && is_quantity(text.substr(begin, end - begin), text.substr(end + 1))) {
      end = std::min(text.find(' ', end + 1), text.size());
    }
    const std::string_view word = text.substr(begin, end - begin);
    std::string& line = lines.back();
    if (!line.empty() && display_width(line) + 1 + display_width(word) > width) {
      line.erase(line.find_last_not_of(' ') + 1);
      lines.emplace_back(word);
    } else {
      line.append(line.empty() ? "" : " ").append(word);
    }
    begin = end + 1;
  }
  return lines;
}

}  // namespace lockstep::terminal
