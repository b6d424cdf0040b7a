#include "guest/csv_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/file.h"
#include "base/suggest.h"
#include "base/yaml_tree.h"
#include "lockstep/error.h"

namespace lockstep::guest {
namespace {

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Takes a cell from the front of the line, and the comma behind it.
std::string take_cell(std::string_view& line) {
  std::string cell;
  if (!line.starts_with('"')) {
    const size_t end = std::min(line.find(','), line.size());
    cell = without_blanks(line.substr(0, end));
    line.remove_prefix(end);
    return cell;
  }
  line.remove_prefix(1);
  for (;;) {
    const size_t quote = line.find('"');
    if (quote == std::string_view::npos) throw DataError("has a quote without end");
    cell += line.substr(0, quote);
    line.remove_prefix(quote + 1);
    if (!line.starts_with('"')) break;
    cell += '"';
    line.remove_prefix(1);
  }
  if (!line.empty() && !line.starts_with(',')) throw DataError("has text after a quoted cell");
  return cell;
}

double number_in(const std::string& cell, const std::string& column) {
  if (cell.empty()) return std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size()) {
    throw DataError(fmt::format("{}: '{}' is not a number", base::shown(column), base::shown(cell)));
  }
  return value;
}

std::vector<size_t> columns_at(const std::vector<std::string>& names, const std::vector<std::string>& header) {
  std::vector<size_t> places;
  for (const std::string& name : names) {
    const auto found = std::find(header.begin(), header.end(), name);
    if (found == header.end()) {
      throw DataError(fmt::format("has no column '{}'{}", base::shown(name), base::hint(name, header)));
    }
    places.push_back(static_cast<size_t>(found - header.begin()));
  }
  return places;
}

}  // namespace

std::vector<std::string> split_csv(std::string_view line) {
  std::vector<std::string> cells;
  for (;;) {
    if (cells.size() == kMostCells) throw DataError(fmt::format("has more than {} cells", kMostCells));
    cells.push_back(take_cell(line));
    if (line.empty()) return cells;
    line.remove_prefix(1);
  }
}

std::vector<std::vector<double>> parse_columns(std::string_view text, const std::vector<std::string>& names,
                                               const std::string& file) {
  std::vector<std::vector<double>> columns(names.size());
  std::vector<size_t> places;
  size_t cells_of_header = 0;
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    const bool whole = end != std::string_view::npos;
    text.remove_prefix(whole ? end + 1 : text.size());
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    try {
      const std::vector<std::string> cells = split_csv(line);
      if (cells_of_header == 0) {
        places = columns_at(names, cells);
        cells_of_header = cells.size();
        continue;
      }
      if (cells.size() != cells_of_header) {
        throw DataError(fmt::format("has {} cells, but the first line has {}", cells.size(), cells_of_header));
      }
      std::vector<double> values;
      for (size_t i = 0; i < names.size(); ++i) values.push_back(number_in(cells[places[i]], names[i]));
      for (size_t i = 0; i < names.size(); ++i) columns[i].push_back(values[i]);
    } catch (const DataError& error) {
      if (!whole && cells_of_header > 0) break;  // still being written
      throw DataError(fmt::format("{}:{}: {}", file, number, error.what()));
    }
  }
  if (cells_of_header == 0) throw DataError(fmt::format("{}: is empty; it takes names in its first line", file));
  return columns;
}

std::vector<std::vector<double>> read_columns(const std::string& file, const std::vector<std::string>& names) {
  const std::vector<uint8_t> bytes = base::read_file(file, kLargestCsv);
  return parse_columns({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, names, file);
}

}  // namespace lockstep::guest
