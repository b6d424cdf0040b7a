#include "observe/tensorboard/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <google/protobuf/message_lite.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/host.h"
#include "observe/tensorboard/crc32c.h"

namespace lockstep::observe {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFilePrefix = "events.out.tfevents.";
constexpr size_t kHead = sizeof(uint64_t) + sizeof(uint32_t);
constexpr size_t kFrame = kHead + sizeof(uint32_t);
constexpr size_t kFirstCapacity = 32UL << 10U;
constexpr size_t kDigits = 10;
constexpr int64_t kLastSecond = 9'999'999'999;

/// Returns the host name as part of a file name.
std::string host_part() {
  std::string name = base::host_name();
  std::replace(name.begin(), name.end(), '/', '_');
  return name.empty() ? "localhost" : name;
}

/// Returns the seconds in the name of an event file; 0 for any other name.
int64_t seconds_of(const std::string& name) {
  if (!name.starts_with(kFilePrefix) || name.size() < kFilePrefix.size() + kDigits) return 0;
  int64_t seconds = 0;
  const char* begin = name.data() + kFilePrefix.size();
  const auto [end, error] = std::from_chars(begin, begin + kDigits, seconds);
  return error == std::errc() && end == begin + kDigits ? seconds : 0;
}

/// Returns the current second, or a later one: readers take the files of a folder in the order of their names, even if
/// the clock was set back.
int64_t next_second(const std::string& folder) {
  using std::chrono::system_clock;
  auto next = static_cast<int64_t>(system_clock::to_time_t(system_clock::now()));
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    next = std::max(next, seconds_of(entry.path().filename().string()) + 1);
  }
  return std::min(next, kLastSecond);
}

template <class T>
void put(uint8_t* at, T value) {
  std::memcpy(at, &value, sizeof(value));
}

}  // namespace

bool has_event_files(const std::string& folder) {
  std::error_code failed;
  for (fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, failed), end;
       !failed && at != end; at.increment(failed)) {
    if (seconds_of(at->path().filename().string()) > 0) return true;
  }
  return false;
}

EventFile::EventFile(const std::string& folder, Warn warn) : path_(folder), warn_(std::move(warn)) {
  try {
    buffer_.reserve(kFirstCapacity);
    base::make_directories(folder);
    create(folder);
  } catch (const std::exception& error) {
    give_up(error.what());
  }
}

void EventFile::create(const std::string& folder) {
  const std::string stem =
      fmt::format("{}/{}{:010}.{}.{}", folder, kFilePrefix, next_second(folder), host_part(), ::getpid());
  for (int n = 0;; ++n) {
    path_ = fmt::format("{}.{}", stem, n);
    constexpr mode_t kMode = 0666;
    file_ = base::FileHandle(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
    if (file_.open()) return;
    if (errno != EEXIST) base::throw_io_error("create", path_, errno);
  }
}

void EventFile::append(const google::protobuf::MessageLite& record) {
  if (!working()) return;
  const size_t length = record.ByteSizeLong();
  const size_t begin = buffer_.size();
  buffer_.resize(begin + kFrame + length);
  uint8_t* at = buffer_.data() + begin;
  put(at, static_cast<uint64_t>(length));
  put(at + sizeof(uint64_t), masked(crc32c({at, sizeof(uint64_t)})));
  record.SerializeWithCachedSizesToArray(at + kHead);
  put(at + kHead + length, masked(crc32c({at + kHead, length})));
}

size_t EventFile::write(int& error) {
  size_t written = 0;
  while (written < buffer_.size()) {
    const ssize_t count = ::write(file_.get(), buffer_.data() + written, buffer_.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      error = count < 0 ? errno : ENOSPC;
      break;
    }
    written += static_cast<size_t>(count);
  }
  return written;
}

void EventFile::flush() {
  if (!working() || buffer_.empty()) return;
  int error = 0;
  const size_t written = write(error);
  if (error == 0) {
    size_ += written;
    buffer_.clear();
    return;
  }
  cut_back(written);
  give_up(fmt::format("cannot write {}: {}", path_, std::generic_category().message(error)));
}

void EventFile::cut_back(size_t written) {
  size_t whole = 0;
  while (whole + sizeof(uint64_t) <= written) {
    uint64_t length = 0;
    std::memcpy(&length, buffer_.data() + whole, sizeof(length));
    if (whole + kFrame + length > written) break;
    whole += kFrame + length;
  }
  size_ += whole;
  if (size_ == 0) {
    ::unlink(path_.c_str());
  } else if (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0) {
    return;  // readers stop at the incomplete record
  }
}

void EventFile::give_up(const std::string& reason) {
  file_.reset();
  buffer_ = {};
  const Warn warn = std::exchange(warn_, nullptr);
  if (warn) warn(reason + "; no more is written for TensorBoard");
}

}  // namespace lockstep::observe
