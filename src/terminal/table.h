// A table of text whose columns are as wide as their widest cell.
#pragma once

#include <string>
#include <vector>

#include "terminal/terminal.h"

namespace lockstep::terminal {

class Table {
 public:
  enum class Align { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Adds a row, one cell per column.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  /// Returns the lines: bold titles, two spaces between columns.
  [[nodiscard]] std::string text(const Terminal& terminal) const;
  /// Returns the lines in at most `width` columns, if possible. Columns that do not fit follow in further tables, which
  /// repeat the first `keys` columns.
  [[nodiscard]] std::string text(const Terminal& terminal, size_t width, size_t keys) const;

  /// Removes columns that have no text below the title.
  void drop_empty_columns();

 private:
  [[nodiscard]] std::vector<size_t> widths() const;
  [[nodiscard]] std::string part(const Terminal& terminal, const std::vector<size_t>& chosen,
                                 const std::vector<size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace lockstep::terminal
