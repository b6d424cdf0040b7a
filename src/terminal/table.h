// A table of text in columns that are as wide as their widest cell.
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

  /// One cell per column.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  /// The lines, the titles bold, two spaces between columns.
  [[nodiscard]] std::string text(const Terminal& terminal) const;
  /// The same in at most `width` columns, as far as that goes: what does not fit follows in more tables, each with the
  /// first `keys` columns again.
  [[nodiscard]] std::string text(const Terminal& terminal, size_t width, size_t keys) const;

  /// Leaves out columns without any text below the title.
  void drop_empty_columns();

 private:
  [[nodiscard]] std::vector<size_t> widths() const;
  [[nodiscard]] std::string part(const Terminal& terminal, const std::vector<size_t>& chosen,
                                 const std::vector<size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace lockstep::terminal
