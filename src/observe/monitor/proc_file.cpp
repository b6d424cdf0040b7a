#include "observe/monitor/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace lockstep::observe {
namespace {

constexpr size_t kFirstBytes = 4096;
constexpr size_t kMostBytes = size_t{8} << 20;

}  // namespace

ProcFile::ProcFile(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

std::string_view ProcFile::read() {
  if (!file_.open()) return {};
  if (buffer_.empty()) buffer_.resize(kFirstBytes);
  size_t used = 0;
  for (;;) {
    const ssize_t count = ::pread(file_.get(), buffer_.data() + used, buffer_.size() - used, static_cast<off_t>(used));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return {};
    used += static_cast<size_t>(count);
    if (count == 0) return {buffer_.data(), used};
    if (used < buffer_.size()) continue;
    if (used >= kMostBytes) return {};
    buffer_.resize(2 * buffer_.size());
  }
}

}  // namespace lockstep::observe
