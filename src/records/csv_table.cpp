#include "records/csv_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/yaml_tree.h"
#include "lockstep/error.h"
#include "records/statistics.h"

namespace lockstep::records {
namespace {

/// Upper limit, well above what runs write: a file of commas alone must not exhaust the memory.
constexpr size_t kMostColumns = 1000;

std::string_view without_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

/// Calls `take` with each field of a line and its number, until it returns false.
template <class Take>
void for_fields(std::string_view line, const Take& take) {
  for (size_t number = 0;; ++number) {
    const size_t comma = line.find(',');
    if (!take(line.substr(0, comma), number) || comma == std::string_view::npos) return;
    line.remove_prefix(comma + 1);
  }
}

bool read_number(std::string_view field, double& value) {
  value = kUnknown;
  if (field.empty()) return true;
  double read = 0;
  const char* const all = field.data() + field.size();
  const auto [end, error] = std::from_chars(field.data(), all, read);
  if (end != all || error == std::errc::invalid_argument) return false;
  if (error == std::errc()) value = read;  // otherwise the number is too large, or too near to 0
  return true;
}

}  // namespace

size_t CsvTable::place(std::string_view name) const {
  return static_cast<size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
}

std::span<const double> CsvTable::column(std::string_view name) const {
  const size_t at = place(name);
  return at < columns_.size() ? std::span<const double>(columns_[at]) : std::span<const double>();
}

double CsvTable::last(std::string_view name) const {
  const std::span<const double> values = column(name);
  const auto known = std::find_if(values.rbegin(), values.rend(), [](double v) { return !std::isnan(v); });
  return known == values.rend() ? kUnknown : *known;
}

void CsvTable::read_header(std::string_view line, const std::string& file) {
  const auto reject = [&](const std::string& what) { throw DataError(file + ":1: " + what); };
  for_fields(line, [&](std::string_view name, size_t number) {
    const bool odd = std::any_of(name.begin(), name.end(), [](char c) { return c < ' ' || c > '~'; });
    if (name.empty() || odd)
      reject(fmt::format("column {} is called '{}'; a name is printable ASCII", number + 1, base::shown(name)));
    if (place(name) < names_.size()) reject(fmt::format("column '{}' appears twice", name));
    if (number == kMostColumns) reject(fmt::format("more than {} columns", kMostColumns));
    names_.emplace_back(name);
    return true;
  });
  columns_.resize(names_.size());
  line_.resize(names_.size());
}

std::string CsvTable::read_line(std::string_view line) {
  size_t fields = 0;
  std::string problem;
  for_fields(line, [&](std::string_view field, size_t number) {
    fields = number + 1;
    if (number >= names_.size()) return true;
    if (!read_number(field, line_[number]) && names_[number] != "time") {
      problem = fmt::format("{} is '{}'; a number or nothing is allowed", names_[number], base::shown(field));
    }
    return problem.empty();
  });
  if (problem.empty() && fields != names_.size()) {
    problem = fmt::format("{} values where the header has {} names", fields, names_.size());
  }
  if (!problem.empty()) return problem;
  for (size_t c = 0; c < columns_.size(); ++c) columns_[c].push_back(line_[c]);
  ++rows_;
  return "";
}

CsvTable CsvTable::parse_what_fits(std::string_view text, const std::string& file, std::string& problem) {
  CsvTable table;
  problem.clear();
  size_t wrong = 0;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) break;
    const std::string_view line = without_return(text.substr(0, end));
    text.remove_prefix(end + 1);
    if (number == 1) {
      table.read_header(line, file);
      continue;
    }
    const std::string what = line.empty() && table.names_.size() > 1 ? "an empty line" : table.read_line(line);
    if (what.empty()) continue;
    if (wrong++ == 0) problem = fmt::format("{}:{}: {}", file, number, what);
  }
  if (wrong > 1) problem += fmt::format(", and {} more such lines", wrong - 1);
  return table;
}

CsvTable CsvTable::parse(std::string_view text, const std::string& file) {
  std::string problem;
  CsvTable table = parse_what_fits(text, file, problem);
  if (!problem.empty()) throw DataError(problem);
  return table;
}

void CsvTable::append(const CsvTable& other) {
  for (const std::string& name : other.names_) {
    if (has(name)) continue;
    names_.push_back(name);
    columns_.emplace_back(rows_, kUnknown);
  }
  line_.resize(names_.size());
  rows_ += other.rows_;
  for (size_t c = 0; c < names_.size(); ++c) {
    const std::span<const double> added = other.column(names_[c]);
    columns_[c].insert(columns_[c].end(), added.begin(), added.end());
    columns_[c].resize(rows_, kUnknown);
  }
}

}  // namespace lockstep::records
