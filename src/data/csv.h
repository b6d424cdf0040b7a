// CSV files of numbers with a label column: one example a line, commas between values.
//
// The first line may name the columns. Values may be quoted; quotes within are doubled and a quoted value ends on its
// line. Blank lines, CRLF and a byte-order mark are passed over, gzip is unpacked. Numbers are finite and taken as they
// are. The file is read in a stream: what is in memory is the floats, once. A DataError names file, line and column,
// the value seen and what is allowed; an IoError what the system refuses. Free functions, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::data {

struct CsvTable {
  int64_t columns = 0;                   ///< besides the labels
  std::vector<float> values;             ///< rows x columns
  std::vector<int32_t> labels;           ///< one per row; empty without a label column
  std::vector<std::string> class_names;  ///< of labels that are text, which are numbered in their sorted order
  std::string label_column;              ///< its name, or "column 5"
};

/// `label_column`: a name (case matters not), a number from 1, "none", or empty: the column named label, class or y, or
/// else the last. Labels are whole numbers from 0, or text.
CsvTable read_csv(const std::string& path, const std::string& label_column = "");
CsvTable parse_csv(std::span<const uint8_t> file, const std::string& name, const std::string& label_column = "");

}  // namespace lockstep::data
