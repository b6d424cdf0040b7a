// Reads a tar archive as it comes from another host. The host is not trusted: an archive may hold regular files and
// folders with plain relative paths, and nothing else. Links, devices, sparse files, absolute paths, paths with "..",
// control characters in names, too many entries and too many bytes are a DataError, before anything of that entry
// reaches the sink. Understands what GNU tar and bsdtar write: ustar, GNU long names and large sizes, pax headers.
// For one thread; the sink is borrowed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::launch {

struct TarLimits {
  uint64_t entries = 100'000;
  uint64_t bytes = uint64_t{64} << 30;  ///< all files together
};

/// Receives the entries in their order. Paths have no ".", ".." or empty parts.
class TarSink {
 public:
  TarSink() = default;
  TarSink(const TarSink&) = delete;
  TarSink& operator=(const TarSink&) = delete;
  virtual ~TarSink() = default;

  virtual void folder(const std::string& path) = 0;
  virtual void begin_file(const std::string& path, int64_t modified) = 0;  ///< in seconds since 1970
  virtual void data(std::string_view bytes) = 0;
  virtual void end_file() = 0;
};

class TarReader {
 public:
  explicit TarReader(TarSink& sink, TarLimits limits = {}) : sink_(sink), limits_(limits) {}

  /// Reads the next bytes, in pieces of any size.
  void feed(std::string_view bytes);
  /// Ends the archive. Throws DataError if it is cut off.
  void finish() const;

 private:
  enum class State : uint8_t { header, file, name, attributes, end };
  static constexpr size_t kBlock = 512;

  /// Name and size of the next entry, given by entries before it.
  struct Extended {
    std::string path;
    bool has_size = false;
    uint64_t size = 0;
  };

  void take_header();
  void take_entry(char type, const std::string& path, uint64_t size, int64_t modified);
  size_t take_data(std::string_view bytes);
  void end_data();
  void read_attributes();
  void set_attribute(std::string_view key, std::string_view value);
  [[nodiscard]] std::string header_path() const;

  TarSink& sink_;
  TarLimits limits_;
  State state_ = State::header;
  std::array<char, kBlock> block_{};
  size_t filled_ = 0;       ///< bytes of block_ that are filled
  uint64_t left_ = 0;       ///< data bytes still to come
  uint64_t padding_ = 0;    ///< padding bytes after the data
  int zero_blocks_ = 0;     ///< two blocks of zeros end an archive
  uint64_t after_end_ = 0;  ///< bytes after the end
  uint64_t entries_ = 0;
  uint64_t bytes_ = 0;
  std::string gathered_;  ///< bytes so far of a long name or of attributes
  Extended next_;
};

/// Returns the path in its plain form ("./a//b" is "a/b", "./" is ""). Throws DataError if it is not allowed.
std::string safe_path(std::string_view path);

}  // namespace lockstep::launch
