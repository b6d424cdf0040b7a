// Unpacker: reads the content of a file, or of bytes in memory, and unpacks it if it is gzip (recognised by its first
// bytes).
//
// Reads as a stream through a small buffer, so that a large file is never in memory twice. Throws DataError if gzip
// data is damaged or cut off, and IoError if the file cannot be read; both name it. For one thread; memory is borrowed.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep::data {

class Unpacker {
 public:
  explicit Unpacker(const std::string& path);
  Unpacker(std::span<const uint8_t> memory, std::string name);
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;
  ~Unpacker();

  /// Fills `out`; fills less only at the end of the content.
  size_t read(std::span<uint8_t> out);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool is_gzip() const { return gzip_; }
  [[nodiscard]] uint64_t file_size() const { return file_size_; }

  /// Returns an upper bound of the content's size: deflate shrinks at most 1032 to 1.
  [[nodiscard]] uint64_t max_size() const { return gzip_ ? file_size_ * 1032 : file_size_; }

 private:
  void start();
  bool refill();
  size_t read_plain(std::span<uint8_t> out);
  size_t read_gzip(std::span<uint8_t> out);
  bool next_member();
  [[noreturn]] void fail(const std::string& reason) const;

  std::string name_;
  uint64_t file_size_ = 0;  ///< declared before file_, whose opening sets it
  base::FileHandle file_;
  std::vector<uint8_t> buffer_;
  std::span<const uint8_t> input_;  ///< read but not yet consumed
  uint64_t unpacked_ = 0;
  bool gzip_ = false;
  bool ended_ = false;
  z_stream stream_{};
};

/// Returns the md5, in hex, of the unpacked content of a file; nothing if the content has more than `most` bytes.
std::optional<std::string> md5_of_content(const std::string& path, uint64_t most);

}  // namespace lockstep::data
