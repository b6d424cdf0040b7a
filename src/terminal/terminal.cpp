#include "terminal/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace lockstep::terminal {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no thread changes the environment
  return value == nullptr ? "" : value;
}

bool utf8_locale() {
  std::string locale = environment("LC_ALL");
  if (locale.empty()) locale = environment("LC_CTYPE");
  if (locale.empty()) locale = environment("LANG");
  std::string lower;
  for (const char c : locale) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
}

std::string repeated(std::string_view text, size_t count) {
  std::string result;
  for (size_t i = 0; i < count; ++i) result += text;
  return result;
}

}  // namespace

Terminal Terminal::detect() {
  Terminal terminal;
  const std::string term = environment("TERM");
  terminal.interactive = isatty(STDOUT_FILENO) == 1 && !term.empty() && term != "dumb";
  terminal.colours = terminal.interactive && environment("NO_COLOR").empty();
  terminal.unicode = utf8_locale();
  return terminal;
}

size_t Terminal::width() {
  constexpr size_t kDefault = 100;
  constexpr size_t kMost = 1000;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  size_t columns = 0;
  const std::string text = environment("COLUMNS");
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), columns);
  const bool usable = error == std::errc() && end == text.data() + text.size() && columns > 0 && columns <= kMost;
  return usable ? columns : kDefault;
}

size_t Terminal::height() {
  constexpr size_t kDefault = 24;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return kDefault;
  return size.ws_row;
}

std::string Terminal::bar(double fraction, size_t columns) const {
  const auto filled = static_cast<size_t>(
      std::clamp(std::floor(fraction * static_cast<double>(columns)), 0.0, static_cast<double>(columns)));
  const size_t rest = columns - filled;
  if (!unicode) return "[" + repeated("#", filled) + repeated(".", rest) + "]";
  return cyan(repeated("━", filled)) + dim(repeated(colours ? "━" : "╌", rest));
}

std::string Terminal::coloured(std::string_view text, size_t which) const {
  constexpr std::array<std::string_view, 12> kCodes{"36", "33", "32", "35", "34", "31",
                                                    "96", "93", "92", "95", "94", "91"};
  return styled(text, kCodes[which % kCodes.size()]);
}

std::string Terminal::styled(std::string_view text, std::string_view code) const {
  return colours ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

}  // namespace lockstep::terminal
