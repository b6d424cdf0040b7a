// A CSV file that grows line by line through a buffer of its own, allocated once. What reaches the disk is whole lines:
// when a write fails (full disk) the file is cut back to its last whole line and an IoError says so. For one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"

namespace lockstep::base {

class CsvFile {
 public:
  /// Makes the file with its header line; it must not exist yet.
  static CsvFile create(const std::string& path, std::string_view header);
  /// Opens it to go on, keeping the lines whose first column is at most `step`; made anew where it is missing. The cut
  /// file appears whole, and another process that had the file open no longer writes to it. Throws DataError where its
  /// header is another one.
  static CsvFile resume(const std::string& path, std::string_view header, uint64_t step);

  /// Adds a line (without its end). Throws IoError.
  void add(std::string_view line);
  void flush();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  static constexpr size_t kBufferBytes = size_t{64} << 10;

  CsvFile(std::string path, FileHandle file, uint64_t size);

  std::string path_;
  FileHandle file_;
  uint64_t size_ = 0;  ///< on disk
  std::unique_ptr<char[]> buffer_;
  size_t used_ = 0;
};

}  // namespace lockstep::base
