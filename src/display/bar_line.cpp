#include "display/bar_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "terminal/text.h"

namespace lockstep::display {
namespace {

constexpr size_t kShortestBar = 8;
constexpr size_t kLongestBar = 30;
constexpr size_t kAroundBar = 11;   ///< columns of the percentage, of the spaces and of an ASCII bar's brackets
constexpr size_t kNeededParts = 2;  ///< parts that matter more than the bar

std::string joined(const std::vector<std::string>& parts, size_t width) {
  std::string text;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (terminal::display_width(text) + terminal::display_width(part) + 3 > width) break;
    text += (text.empty() ? "" : "  ") + part;
  }
  return text;
}

}  // namespace

std::string bar_line(const terminal::Terminal& terminal, double fraction, const std::vector<std::string>& parts,
                     size_t width) {
  const std::vector<std::string> needed(
      parts.begin(), parts.begin() + static_cast<std::ptrdiff_t>(std::min(parts.size(), kNeededParts)));
  const size_t least = terminal::display_width(joined(needed, width)) + 3;
  if (std::isnan(fraction) || least + kAroundBar + kShortestBar > width) return joined(parts, width);
  const std::string text = joined(parts, width - kAroundBar - kShortestBar);
  const size_t columns = std::min(width - terminal::display_width(text) - kAroundBar, kLongestBar);
  const double done = std::clamp(fraction, 0.0, 1.0);
  return fmt::format("{} {:>4.0f} %  {}", terminal.bar(done, columns), done * 100, text);
}

}  // namespace lockstep::display
