// Files that appear whole or not at all, and a lock between processes.
//
// A WholeFile is written beside its final name and takes that name only in `commit` (write, fsync, rename, fsync of the
// folder). Destroyed before that, it leaves nothing behind. A LockFile is an flock: the system drops it when its
// process dies, so a lock is never stale. Every failure is an IoError that names the final path and the system's
// reason.
// Objects belong to one thread at a time; different objects are independent.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::base {

/// An open file descriptor; the destructor closes it.
class FileHandle {
 public:
  FileHandle() = default;
  explicit FileHandle(int fd) : fd_(fd) {}
  FileHandle(FileHandle&& other) noexcept : fd_(other.release()) {}
  FileHandle& operator=(FileHandle&& other) noexcept;
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  ~FileHandle() { reset(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool open() const { return fd_ >= 0; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

/// Throws IoError "cannot WHAT PATH: system's reason", with the reason of `error_number`. Throws LimitError, which also
/// names the limit, if a limit was reached (limits.h).
[[noreturn]] void throw_io_error(const std::string& what, const std::string& path, int error_number);

/// Opens a regular file for reading and sets `size` to its size.
FileHandle open_for_reading(const std::string& path, uint64_t& size);

/// Reads up to buffer.size() bytes, fewer only at the end of the file.
size_t read_some(const FileHandle& file, std::span<uint8_t> buffer, const std::string& path);

/// Returns the whole content of a regular file of at most `limit` bytes.
std::vector<uint8_t> read_file(const std::string& path, uint64_t limit = std::numeric_limits<uint64_t>::max());

/// Creates a folder and its parents; an existing folder is fine.
void make_directories(const std::string& path);

class WholeFile {
 public:
  /// Starts a file beside `path`, in the same folder.
  explicit WholeFile(std::string path);
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();

  void write(std::span<const uint8_t> bytes);
  void write(std::string_view text);

  /// Makes the content durable and moves it to its final name.
  void commit();

  /// Returns the path of the content before `commit`.
  [[nodiscard]] const std::string& temporary_path() const { return temporary_; }

  /// Removes the temporary files that dead writers of `path` left. Call it only under a lock that excludes live
  /// writers.
  static void remove_leftovers(const std::string& path);

 private:
  std::string path_;
  std::string temporary_;
  FileHandle file_;
};

void write_whole_file(const std::string& path, std::span<const uint8_t> bytes);
void write_whole_file(const std::string& path, std::string_view text);

class LockFile {
 public:
  /// Takes the lock; returns nothing if another holder has it. Creates the file if absent and never removes it.
  static std::optional<LockFile> try_lock(const std::string& path);

  /// Waits for the lock for at most `patience`. Calls `on_wait` once, before the first wait.
  static LockFile lock(const std::string& path, std::chrono::milliseconds patience,
                       const std::function<void()>& on_wait = {});

 private:
  explicit LockFile(FileHandle file) : file_(std::move(file)) {}

  FileHandle file_;
};

}  // namespace lockstep::base
