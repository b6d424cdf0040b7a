// Figures that a study reported, from a CSV file of the experiment, in the units of our fields. A cell may hold one
// figure per node ("58;57", which counts as their mean) and end in K, M or G. Columns that end in _percent, _mb, _kb,
// _gb or _ms are converted. Plain values; any thread.
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
  /// `columns`: field -> column of the file; `where`: column -> the only value used.
  Reported(const std::string& csv, const Pairs& columns, const Pairs& where);

  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] size_t size() const { return rows_.size(); }
  /// Returns whether the file has the field.
  [[nodiscard]] bool has(const std::string& field) const;
  /// Returns the rows with the key's values, comparing the fields that the file has; none if it has none of them.
  [[nodiscard]] std::vector<size_t> rows(const Fields& fields, const Key& key) const;
  [[nodiscard]] double number(size_t row, const std::string& field) const;
  [[nodiscard]] std::string text(size_t row, const std::string& field) const;
  /// Returns the mean over rows; NaN if no row has a value.
  [[nodiscard]] double mean(const std::vector<size_t>& rows, const std::string& field) const;

 private:
  std::map<std::string, std::string> columns_;  ///< by field
  std::vector<std::map<std::string, std::string>> rows_;
};

}  // namespace lockstep::report
