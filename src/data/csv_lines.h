// CsvLines: the lines of a CSV file, one at a time, cut into fields. Borrows the content; for one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/unpack.h"

namespace lockstep::data {

class CsvLines {
 public:
  explicit CsvLines(Unpacker& content) : content_(content) {}

  /// Goes to the next line that is not blank; returns false at the end. Throws DataError for a broken quote, an
  /// endless line, or text in UTF-16.
  bool next();

  /// Returns the line's fields, without quotes and surrounding blanks; valid until `next`.
  [[nodiscard]] const std::vector<std::string_view>& fields() const { return fields_; }
  /// Returns "file:17".
  [[nodiscard]] std::string place() const { return content_.name() + ":" + std::to_string(number_); }
  [[nodiscard]] int64_t number() const { return number_; }

 private:
  bool read_line();
  void check_start();
  void cut();
  size_t cut_quoted(size_t begin);
  bool refill();

  Unpacker& content_;
  std::vector<uint8_t> buffer_;
  size_t begin_ = 0;  ///< start of the unused part
  size_t end_ = 0;
  bool after_return_ = false;  ///< the last line ended in a carriage return, to which a line feed may belong
  std::string line_;
  std::vector<std::string_view> fields_;
  int64_t number_ = 0;
};

}  // namespace lockstep::data
