// CSV files of numbers with a label column: one example a line, commas between values.
//
// The first line may name the columns. Values may be quoted; a quote within is doubled, and a quoted value ends on its
// line. Lines end in LF, CRLF or CR. Skips blank lines and a byte-order mark; unpacks gzip. Numbers must be finite and
// are not scaled. Reads the file as a stream: memory holds only the floats, once. A DataError names file, line and
// column, the value seen and what is allowed; an IoError names the system's reason. Free functions, any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep::data {

struct CsvTable {
  int64_t columns = 0;                   ///< without the labels' column
  std::vector<float> values;             ///< rows x columns
  std::vector<int32_t> labels;           ///< one per row; empty without a label column
  std::vector<std::string> class_names;  ///< for text labels, which are numbered in sorted order
  std::string label_column;              ///< name, or "column 5"
};

/// Reads the file. `label_column` is a name (ignoring case), a number from 1, "none", or empty: the column named label,
/// or else class, or else y, or else the last. Labels are whole numbers from 0, or text. If `features` is given, a file
/// with so many columns and none of the label's name has no labels: data to predict.
CsvTable read_csv(const std::string& path, const std::string& label_column = "", int64_t features = 0);
CsvTable parse_csv(std::span<const uint8_t> file, const std::string& name, const std::string& label_column = "",
                   int64_t features = 0);

}  // namespace lockstep::data
