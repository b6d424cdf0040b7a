// A ParameterShard's versions in a mapped file: stored data survives kill -9 of the process and, with `synced`, a power
// cut. All bytes are reserved on the disk before they are mapped, so that no store can fail later.
//
//    header page: magic, format, identity and sizes, with a checksum
//    two records: each sequence number, version, buffer, ledger and checksum; commits write them in turn
//    buffers:     whole pages each; their number follows from the file's length
//
// A commit invalidates the older record, fills it and validates it with one 64-bit store, so that a killed process
// leaves the newest commit or the one before. `synced` writes the buffer to the disk first, and the record before the
// commit returns; a record torn by a power cut fails its checksum, and the other one counts. The contents of the
// buffers have no checksum.
//
// A file without `synced` is refused after a reboot: nothing tells which pages had been written back. The file appears
// whole, and is locked (FILE.lock) while it is open.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "base/file.h"
#include "ps/state_memory.h"

namespace lockstep::ps {

struct StateFileOptions {
  std::string path;
  uint64_t identity = 0;
  size_t ledger_bytes = 0;
  size_t buffers = 3;  ///< number reserved at the start
  bool synced = false;
};

/// A shared mapping of a part of a file.
class Mapping {
 public:
  Mapping() = default;
  /// Throws IoError.
  Mapping(const base::FileHandle& file, const std::string& path, size_t offset, size_t bytes);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping();

  [[nodiscard]] std::byte* data() const { return data_; }
  /// Waits until the content is on the disk.
  void sync(const std::string& path) const;

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

class StateFile final : public StateMemory {
 public:
  /// Makes the file, or resumes an existing one. Throws IoError if the disk has no room, another process has the file
  /// or the system refuses; DataError for a truncated or damaged file, or another identity or layout.
  StateFile(const StateFileOptions& options, const BufferLayout& layout, size_t page);

  [[nodiscard]] size_t buffers() const override { return buffers_.size(); }
  [[nodiscard]] std::byte* buffer(size_t i) const override { return buffers_[i].data(); }
  bool grow() override;
  void sync(size_t buffer) override;
  void commit(const Commit& commit) override;
  [[nodiscard]] std::optional<Recovered> recovered() const override { return recovered_; }
  [[nodiscard]] bool keeps_previous() const override { return options_.synced; }

 private:
  struct Header;
  struct Record;
  enum class RecordState : uint8_t { none, whole, damaged };

  [[nodiscard]] Header wanted_header() const;
  [[nodiscard]] size_t buffer_offset(size_t i) const;
  [[nodiscard]] Record& record(size_t i) const;
  [[nodiscard]] RecordState state_of(size_t i) const;
  [[noreturn]] void reject(const std::string& why) const;
  void create() const;
  void open();
  void check_header();
  void map();
  void recover();
  int reserve(size_t end) const;

  StateFileOptions options_;
  size_t page_;
  size_t count_;
  size_t slots_;
  size_t buffer_bytes_;
  size_t record_bytes_;
  base::LockFile lock_;
  base::FileHandle file_;
  size_t size_ = 0;
  bool was_synced_ = false;  // durability that the file was written with
  std::array<Mapping, 2> records_;
  std::vector<Mapping> buffers_;
  uint64_t sequence_ = 0;  // sequence number of the newest record
  size_t next_ = 0;        // record to write next
  std::optional<Recovered> recovered_;
};

}  // namespace lockstep::ps
