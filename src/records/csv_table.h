// A CSV file of numbers, as runs write it: a header line with names, then lines of numbers. An empty field is NaN. A
// last line without its line end is still being written, or was cut off by a kill; it is left out. Plain values; any
// thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::records {

class CsvTable {
 public:
  CsvTable() = default;

  /// Throws DataError "FILE:LINE: ..." for a line that does not fit the header or a field that is not a number. Only
  /// the column `time` may hold text, which is read as NaN.
  static CsvTable parse(std::string_view text, const std::string& file);
  /// Leaves out lines that do not fit. Writes into `problem` the first such line and their number; empty if all fit.
  static CsvTable parse_what_fits(std::string_view text, const std::string& file, std::string& problem);

  [[nodiscard]] size_t rows() const { return rows_; }
  [[nodiscard]] bool empty() const { return rows_ == 0; }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] bool has(std::string_view name) const { return place(name) < names_.size(); }
  /// Returns the values from the first line on; empty if there is no such column.
  [[nodiscard]] std::span<const double> column(std::string_view name) const;
  /// Returns the newest known value; NaN if there is none.
  [[nodiscard]] double last(std::string_view name) const;

  /// Appends the lines of another table. A column that one of the tables lacks is NaN there.
  void append(const CsvTable& other);

 private:
  [[nodiscard]] size_t place(std::string_view name) const;
  void read_header(std::string_view line, const std::string& file);
  /// Returns what is wrong with the line; empty if nothing is.
  std::string read_line(std::string_view line);

  std::vector<std::string> names_;
  std::vector<std::vector<double>> columns_;  ///< by name; each has `rows_` values
  std::vector<double> line_;                  ///< the line being read
  size_t rows_ = 0;
};

}  // namespace lockstep::records
