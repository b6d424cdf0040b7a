#include "launch/host_command.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <optional>

#include "lockstep/error.h"
#include "process/line_reader.h"

namespace lockstep::launch {
namespace {

constexpr std::chrono::minutes kLongestSilence{10};
constexpr std::chrono::hours kLongest{6};

/// Reads the available bytes of a non-blocking descriptor. Returns false at its end.
bool read_available(int fd, const CommandOutput& sink) {
  std::array<char, 65536> buffer{};
  while (fd >= 0) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return true;
    if (count <= 0) return false;
    sink({buffer.data(), static_cast<size_t>(count)});
  }
  return false;
}

}  // namespace

void run_host_command(const process::Command& command, const CommandOutput& output) {
  process::Child child(command);
  std::string first;
  const auto keep = [&](const std::string& line) {
    if (first.empty()) first = line;
  };
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  bool open = true;
  std::optional<process::Ending> ending;
  while (!(ending = child.reap())) {
    std::array<pollfd, 3> fds{{{child.end_fd(), POLLIN, 0},
                               {child.fd(process::Stream::err), POLLIN, 0},
                               {open ? child.fd(process::Stream::out) : -1, POLLIN, 0}}};
    constexpr int kSilence = std::chrono::milliseconds(kLongestSilence).count();
    if (poll(fds.data(), fds.size(), kSilence) == 0)
      throw IoError(fmt::format("no answer for {} minutes", kLongestSilence.count()));
    if (std::chrono::steady_clock::now() > deadline)
      throw IoError(fmt::format("not finished after {} hours", kLongest.count()));
    child.read(process::Stream::err, keep);
    open = open && read_available(child.fd(process::Stream::out), output);
  }
  if (open) read_available(child.fd(process::Stream::out), output);
  child.read_rest(process::Stream::err, keep);
  if (!ending->ok()) throw IoError(first.empty() ? ending->text() : process::printable(first));
}

}  // namespace lockstep::launch
