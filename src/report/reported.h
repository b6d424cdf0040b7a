// Figures that a study reported, from a CSV file that the experiment keeps: numbers in the units of our fields. Cells
// may hold one figure for each node ("58;57", of which the mean counts) and end in K, M or G; columns that end in
// _percent, _mb, _kb, _gb or _ms are converted. Plain values; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/observations.h"

namespace lockstep::report {

class Reported {
 public:
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  Reported() = default;
  /// `columns`: field -> column of the file; `where`: column -> the only value taken.
  Reported(const std::string& csv, const Pairs& columns, const Pairs& where);

  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] size_t size() const { return rows_.size(); }
  /// Is the field in the file?
  [[nodiscard]] bool has(const std::string& field) const;
  /// The rows that have the key's values, as far as its fields are in the file. None where none of them is.
  [[nodiscard]] std::vector<size_t> rows(const Fields& fields, const Key& key) const;
  [[nodiscard]] double number(size_t row, const std::string& field) const;
  [[nodiscard]] std::string text(size_t row, const std::string& field) const;
  /// The mean over rows; NaN where none has it.
  [[nodiscard]] double mean(const std::vector<size_t>& rows, const std::string& field) const;

 private:
  std::map<std::string, std::string> columns_;  ///< by field
  std::vector<std::map<std::string, std::string>> rows_;
};

}  // namespace lockstep::report
