#include "report/reported.h"

#include <algorithm>
#include <numeric>

#include "records/statistics.h"
#include "report/figures.h"

namespace lockstep::report {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

double scaled_number(std::string text) {
  double factor = 1;
  if (!text.empty()) {
    const char last = text.back();
    factor = last == 'K' || last == 'k' ? 1e3 : last == 'M' ? 1e6 : last == 'G' ? 1e9 : 1;
    if (factor != 1) text.pop_back();
  }
  return number_of(text) * factor;
}

/// Returns the factor from the unit in a column's name to the unit of the field.
double factor_of(const std::string& column, lab::Unit unit) {
  const bool bytes = unit == lab::Unit::bytes || unit == lab::Unit::bytes_per_second;
  if (column.find("_percent") != std::string::npos && unit == lab::Unit::share) return 0.01;
  if (bytes && column.ends_with("_kb")) return 1e3;
  if (bytes && column.ends_with("_mb")) return 1e6;
  if (bytes && column.ends_with("_gb")) return 1e9;
  if (unit == lab::Unit::seconds && column.ends_with("_ms")) return 1e-3;
  return 1;
}

}  // namespace

Reported::Reported(const std::string& csv, const Pairs& columns, const Pairs& where) {
  for (const auto& [field, column] : columns) columns_.emplace(field, column);
  std::vector<std::string> names;
  for (std::string line : split(csv, '\n')) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    const std::vector<std::string> cells = split(line, ',');
    if (names.empty()) {
      names = cells;
      continue;
    }
    std::map<std::string, std::string> row;
    for (size_t i = 0; i < std::min(names.size(), cells.size()); ++i) row.emplace(names[i], cells[i]);
    const bool wanted = std::all_of(where.begin(), where.end(), [&](const auto& condition) {
      const auto found = row.find(condition.first);
      return found != row.end() && same_value(found->second, condition.second);
    });
    if (wanted) rows_.push_back(std::move(row));
  }
}

bool Reported::has(const std::string& field) const { return columns_.contains(field) && !rows_.empty(); }

std::string Reported::text(size_t row, const std::string& field) const {
  const auto column = columns_.find(field);
  if (column == columns_.end()) return "";
  const auto cell = rows_.at(row).find(column->second);
  return cell == rows_[row].end() ? "" : cell->second;
}

double Reported::number(size_t row, const std::string& field) const {
  std::vector<double> values;
  for (const std::string& part : split(text(row, field), ';')) values.push_back(scaled_number(part));
  return has(field) ? records::mean(values) * factor_of(columns_.at(field), unit_of(field)) : records::kUnknown;
}

std::vector<size_t> Reported::rows(const Fields& fields, const Key& key) const {
  std::vector<size_t> found;
  if (std::none_of(fields.begin(), fields.end(), [&](const std::string& field) { return has(field); })) return found;
  for (size_t row = 0; row < rows_.size(); ++row) {
    bool fits = true;
    for (size_t i = 0; i < fields.size(); ++i) {
      fits = fits && (!has(fields[i]) || same_value(text(row, fields[i]), key.at(i)));
    }
    if (fits) found.push_back(row);
  }
  return found;
}

double Reported::mean(const std::vector<size_t>& rows, const std::string& field) const {
  std::vector<double> values;
  for (const size_t row : rows) values.push_back(number(row, field));
  return records::mean(values);
}

}  // namespace lockstep::report
