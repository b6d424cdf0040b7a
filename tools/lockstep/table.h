// A table of text in columns that are as wide as their widest cell.
#pragma once

#include <string>
#include <vector>

#include "terminal.h"

namespace lockstep::tools {

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

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace lockstep::tools
