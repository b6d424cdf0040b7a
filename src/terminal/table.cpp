#include "terminal/table.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "terminal/text.h"

namespace lockstep::terminal {
namespace {

constexpr std::string_view kGap = "  ";

}  // namespace

std::vector<size_t> Table::widths() const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    widths.push_back(display_width(columns_[c].title));
    for (const auto& row : rows_) widths[c] = std::max(widths[c], display_width(row[c]));
  }
  return widths;
}

std::string Table::part(const Terminal& terminal, const std::vector<size_t>& chosen,
                        const std::vector<size_t>& widths) const {
  const auto line = [&](const auto& cell_of, bool title) {
    std::string result;
    for (const size_t c : chosen) {
      const std::string cell = title ? terminal.bold(cell_of(c)) : cell_of(c);
      const bool left = columns_[c].align == Align::left;
      result += left ? padded_right(cell, widths[c]) : padded_left(cell, widths[c]);
      if (c != chosen.back()) result += kGap;
    }
    result.erase(result.find_last_not_of(' ') + 1);
    return result + "\n";
  };
  std::string result = line([&](size_t c) { return columns_[c].title; }, true);
  for (const auto& row : rows_) result += line([&](size_t c) { return row[c]; }, false);
  return result;
}

std::string Table::text(const Terminal& terminal) const {
  std::vector<size_t> all(columns_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return part(terminal, all, widths());
}

std::string Table::text(const Terminal& terminal, size_t width, size_t keys) const {
  const std::vector<size_t> each = widths();
  std::vector<size_t> first(std::min(keys, columns_.size()));
  std::iota(first.begin(), first.end(), size_t{0});
  size_t key_width = 0;
  for (const size_t c : first) key_width += each[c] + kGap.size();
  std::string result;
  size_t next = first.size();
  do {
    std::vector<size_t> chosen = first;
    size_t used = key_width;
    while (next < columns_.size() && (chosen.size() == first.size() || used + each[next] <= width)) {
      used += each[next] + kGap.size();
      chosen.push_back(next++);
    }
    result += (result.empty() ? "" : "\n") + part(terminal, chosen, each);
  } while (next < columns_.size());
  return result;
}

void Table::drop_empty_columns() {
  for (size_t c = columns_.size(); c-- > 0;) {
    const auto filled = [&](const std::vector<std::string>& row) { return !row[c].empty(); };
    if (std::any_of(rows_.begin(), rows_.end(), filled)) continue;
    columns_.erase(columns_.begin() + static_cast<std::ptrdiff_t>(c));
    for (auto& row : rows_) row.erase(row.begin() + static_cast<std::ptrdiff_t>(c));
  }
}

}  // namespace lockstep::terminal
