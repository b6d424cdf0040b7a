#include "base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "base/limits.h"
#include "lockstep/error.h"

namespace lockstep::base {
namespace {

constexpr const char* kTemporaryMark = ".tmp-";

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

std::string format_seconds(std::chrono::milliseconds time) {
  const auto tenths = (time.count() + 50) / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

void sync_folder(const std::string& path) {
  const FileHandle folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.open()) throw_io_error("open folder", path, errno);
  // Some file systems cannot sync a folder and return EINVAL; the rename is then as durable as possible.
  if (::fsync(folder.get()) != 0 && errno != EINVAL) throw_io_error("sync folder", path, errno);
}

/// Opens a new file beside `path`. Skips leftovers of dead processes that had this process's number.
FileHandle open_beside(const std::string& path, std::string& temporary) {
  const std::string stem = path + kTemporaryMark + std::to_string(::getpid()) + "-";
  for (int attempt = 0;; ++attempt) {
    temporary = stem + std::to_string(attempt);
    FileHandle file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.open()) return file;
    if (errno != EEXIST || attempt == 9999) throw_io_error("create", path, errno);
  }
}

FileHandle open_lock_file(const std::string& path) {
  FileHandle file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!file.open()) throw_io_error("create lock file", path, errno);
  return file;
}

bool try_flock(const FileHandle& file, const std::string& path) {
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) throw_io_error("lock", path, errno);
  }
  return true;
}

}  // namespace

FileHandle& FileHandle::operator=(FileHandle&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int FileHandle::release() { return std::exchange(fd_, -1); }

void FileHandle::reset() {
  if (fd_ >= 0) ::close(release());
}

void throw_io_error(const std::string& what, const std::string& path, int error_number) {
  const std::string text = "cannot " + what + " " + path + ": " + std::generic_category().message(error_number);
  const std::string limit = limit_text(error_number);
  if (!limit.empty()) throw LimitError(text + "; " + limit, error_number, path);
  throw IoError(text, error_number, path);
}

FileHandle open_for_reading(const std::string& path, uint64_t& size) {
  // O_NONBLOCK: opening a named pipe without a writer would hang; regular files ignore the flag.
  FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.open()) throw_io_error("open", path, errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) throw_io_error("examine", path, errno);
  if (S_ISDIR(info.st_mode)) throw_io_error("read", path, EISDIR);
  if (!S_ISREG(info.st_mode)) throw IoError("cannot read " + path + ": it is not a regular file");
  size = static_cast<uint64_t>(info.st_size);
  return file;
}

size_t read_some(const FileHandle& file, std::span<uint8_t> buffer, const std::string& path) {
  size_t done = 0;
  while (done < buffer.size()) {
    const ssize_t got = ::read(file.get(), buffer.data() + done, buffer.size() - done);
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_io_error("read", path, errno);
    done += static_cast<size_t>(got);
  }
  return done;
}

std::vector<uint8_t> read_file(const std::string& path, uint64_t limit) {
  uint64_t size = 0;
  const FileHandle file = open_for_reading(path, size);
  if (size > limit) {
    throw IoError("cannot read " + path + ": it has " + std::to_string(size) + " bytes, at most " +
                  std::to_string(limit) + " are allowed");
  }
  std::vector<uint8_t> content(size);
  content.resize(read_some(file, content, path));
  return content;
}

void make_directories(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw_io_error("create folder", path, error.value());
}

WholeFile::WholeFile(std::string path) : path_(std::move(path)), file_(open_beside(path_, temporary_)) {}

WholeFile::~WholeFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void WholeFile::write(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw_io_error("write", path_, errno);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
}

void WholeFile::write(std::string_view text) {
  write(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

void WholeFile::commit() {
  if (::fsync(file_.get()) != 0) throw_io_error("write", path_, errno);
  if (::close(file_.release()) != 0) throw_io_error("write", path_, errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) throw_io_error("create", path_, errno);
  temporary_.clear();
  sync_folder(folder_of(path_));
}

void WholeFile::remove_leftovers(const std::string& path) {
  const std::string stem = std::filesystem::path(path).filename().string() + kTemporaryMark;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_of(path), ignored)) {
    if (entry.path().filename().string().starts_with(stem)) std::filesystem::remove(entry.path(), ignored);
  }
}

void write_whole_file(const std::string& path, std::span<const uint8_t> bytes) {
  WholeFile file(path);
  file.write(bytes);
  file.commit();
}

void write_whole_file(const std::string& path, std::string_view text) {
  write_whole_file(path, std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

std::optional<LockFile> LockFile::try_lock(const std::string& path) {
  FileHandle file = open_lock_file(path);
  if (!try_flock(file, path)) return std::nullopt;
  return LockFile(std::move(file));
}

LockFile LockFile::lock(const std::string& path, std::chrono::milliseconds patience,
                        const std::function<void()>& on_wait) {
  constexpr std::chrono::milliseconds kPoll{20};
  const auto deadline = std::chrono::steady_clock::now() + patience;
  FileHandle file = open_lock_file(path);
  for (bool first = true; !try_flock(file, path); first = false) {
    if (first && on_wait) on_wait();
    if (std::chrono::steady_clock::now() >= deadline) {
      throw IoError("cannot lock " + path + ": another process has held it for " + format_seconds(patience));
    }
    std::this_thread::sleep_for(kPoll);
  }
  return LockFile(std::move(file));
}

}  // namespace lockstep::base
