// A CSV file that grows line by line through its own buffer, allocated once. Only whole lines stay on disk: if a
// write fails (full disk), the file is cut back to its last whole line and an IoError is thrown. For one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"

namespace lockstep::base {

class CsvFile {
 public:
  /// Creates the file with its header line. Throws IoError if it exists.
  static CsvFile create(const std::string& path, std::string_view header);
  /// Opens the file to append, keeping the lines whose first column is at most `step`. Creates the file if it is
  /// missing or ends in its header. Replaces the file as a whole, so a process that still has the old file open no
  /// longer writes to it. Throws DataError if the header differs.
  static CsvFile resume(const std::string& path, std::string_view header, uint64_t step);

  /// Adds a line (without its line end). Throws IoError.
  void add(std::string_view line);
  void flush();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  static constexpr size_t kBufferBytes = size_t{64} << 10;

  CsvFile(std::string path, FileHandle file, uint64_t size);

  std::string path_;
  FileHandle file_;
  uint64_t size_ = 0;  ///< bytes on disk
  std::unique_ptr<char[]> buffer_;
  size_t used_ = 0;
};

}  // namespace lockstep::base
