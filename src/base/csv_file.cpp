#include "base/csv_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

#include "lockstep/error.h"

namespace lockstep::base {
namespace {

/// Returns the header and the lines up to `step`; drops a last line without an end.
std::string cut(const std::string& content, uint64_t step) {
  std::string kept;
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = content.find('\n', begin);
    if (end == std::string::npos) break;
    uint64_t line_step = 0;
    std::from_chars(content.data() + begin, content.data() + end, line_step);
    if (begin == 0 || line_step <= step) kept.append(content, begin, end + 1 - begin);
    begin = end + 1;
  }
  return kept;
}

FileHandle open_file(const std::string& path, int flags) {
  FileHandle file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0666));
  if (!file.open()) throw_io_error("create", path, errno);
  return file;
}

}  // namespace

CsvFile::CsvFile(std::string path, FileHandle file, uint64_t size)
    : path_(std::move(path)), file_(std::move(file)), size_(size), buffer_(std::make_unique<char[]>(kBufferBytes)) {}

CsvFile CsvFile::create(const std::string& path, std::string_view header) {
  CsvFile made(path, open_file(path, O_CREAT | O_EXCL), 0);
  made.add(header);
  made.flush();
  return made;
}

CsvFile CsvFile::resume(const std::string& path, std::string_view header, uint64_t step) {
  if (::access(path.c_str(), F_OK) != 0) return create(path, header);
  const std::vector<uint8_t> bytes = read_file(path);
  const std::string first = std::string(header) + "\n";
  std::string content(bytes.begin(), bytes.end());
  if (first.starts_with(content)) content = first;  // its writer was killed before it had written the header
  if (!content.starts_with(first)) {
    throw DataError(path + ": the first line must be '" + std::string(header) + "'");
  }
  const std::string kept = cut(content, step);
  write_whole_file(path, kept);  // replaces the file, so that an earlier writer's late lines do not get into it
  return {path, open_file(path, O_APPEND), kept.size()};
}

void CsvFile::add(std::string_view line) {
  if (line.size() >= kBufferBytes) throw Error(path_ + ": a line has " + std::to_string(line.size()) + " bytes");
  if (used_ + line.size() + 1 > kBufferBytes) flush();
  std::memcpy(buffer_.get() + used_, line.data(), line.size());
  used_ += line.size();
  buffer_[used_++] = '\n';
}

void CsvFile::flush() {
  size_t written = 0;
  while (written < used_) {
    const ssize_t got = ::write(file_.get(), buffer_.get() + written, used_ - written);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      used_ = 0;
      // Cuts back to whole lines. If that fails too, the error below is still the one to report.
      [[maybe_unused]] const int ignored = ::ftruncate(file_.get(), static_cast<off_t>(size_));
      throw_io_error("write", path_, error);
    }
    written += static_cast<size_t>(got);
  }
  size_ += used_;
  used_ = 0;
}

}  // namespace lockstep::base
