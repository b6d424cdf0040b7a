// Named columns of numbers from CSV files of programs that are not ours. Cells may be quoted; columns that nobody asks
// for may hold anything. Free functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::guest {

inline constexpr uint64_t kLargestCsv = uint64_t{1} << 28;
inline constexpr size_t kMostCells = 1000;  ///< of a line

/// Splits a line at commas outside of quotes. A quote in a quoted cell is doubled. Throws DataError for a quote without
/// end, text after one, or too many cells.
std::vector<std::string> split_csv(std::string_view line);

/// Returns the columns of these names, in their order; an empty cell is NaN. The first line has the names; a last line
/// without its end is left out if it does not fit. Throws DataError "FILE:LINE: ...".
std::vector<std::vector<double>> parse_columns(std::string_view text, const std::vector<std::string>& names,
                                               const std::string& file);
std::vector<std::vector<double>> read_columns(const std::string& file, const std::vector<std::string>& names);

}  // namespace lockstep::guest
