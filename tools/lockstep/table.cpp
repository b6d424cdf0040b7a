#include "table.h"

#include <algorithm>

#include "text.h"

namespace lockstep::tools {

std::string Table::text(const Terminal& terminal) const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(display_width(columns_[c].title));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], display_width(row[c]));
  }
  const auto line = [&](const auto& cell_of, bool title) {
    std::string result;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const std::string cell = title ? terminal.bold(cell_of(c)) : cell_of(c);
      const bool left = columns_[c].align == Align::left;
      result += left ? padded_right(cell, widths[c]) : padded_left(cell, widths[c]);
      if (c + 1 < columns_.size()) result += "  ";
    }
    result.erase(result.find_last_not_of(' ') + 1);
    return result + "\n";
  };
  std::string result = line([&](size_t c) { return columns_[c].title; }, true);
  for (const auto& row : rows_) result += line([&](size_t c) { return row[c]; }, false);
  return result;
}

}  // namespace lockstep::tools
