#include "http/connection.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace lockstep::http {
namespace {

constexpr size_t kMostUnsent = size_t{256} << 10;  ///< bytes of events that a stream has not read
constexpr size_t kReadBytes = 16384;
constexpr std::chrono::seconds kLongestDraining{2};
constexpr std::chrono::seconds kBeat{
    15};  ///< interval of comments sent to streams, so that vanished clients are noticed

bool try_again(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

Connection::Connection(uint64_t number, base::FileHandle socket, const Limits& limits)
    : number_(number), socket_(std::move(socket)), limits_(limits), deadline_(Clock::now() + limits.request) {}

pollfd Connection::poll_request() const {
  const bool reads = stage_ == Stage::receiving || stage_ == Stage::draining || stage_ == Stage::streaming;
  const int wanted = (reads ? POLLIN : 0) | (unsent_.empty() ? 0 : POLLOUT);
  const bool ignored = stage_ == Stage::waiting;  // a vanished client would otherwise be reported again and again
  return {ignored ? -1 : socket_.get(), static_cast<short>(wanted), 0};
}

bool Connection::advance() {
  if (Clock::now() >= deadline_) {
    if (stage_ != Stage::streaming) return false;
    publish(": still here\n\n");
    deadline_ = Clock::now() + kBeat;
  }
  switch (stage_) {
    case Stage::receiving:
      return receive();
    case Stage::asked:
    case Stage::waiting:
      return true;
    case Stage::sending:
      return send();
    case Stage::draining:
      return discard_input();
    case Stage::streaming:
      return discard_input() && send() && unsent_.size() <= kMostUnsent;
  }
  return false;
}

std::string Connection::take_request() {
  stage_ = Stage::waiting;
  deadline_ = Clock::now() + limits_.answer;
  return std::move(request_);
}

void Connection::answer(std::string text, bool stays) {
  stage_ = stays ? Stage::streaming : Stage::sending;
  unsent_ = std::move(text);
  deadline_ = Clock::now() + (stays ? kBeat : limits_.answer);
}

bool Connection::receive() {
  std::array<char, kReadBytes> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): recv fills it
  const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (count < 0) return try_again(errno);
  if (count == 0) return false;
  request_.append(buffer.data(), static_cast<size_t>(count));
  if (request_.size() > limits_.request_bytes) {
    answer(plain_response(431, "the request is too large"));
  } else if (is_whole_request(request_)) {
    stage_ = Stage::asked;
  }
  return true;
}

bool Connection::send() {
  if (unsent_.empty()) return true;
  const ssize_t count = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
  if (count < 0) return try_again(errno);
  unsent_.erase(0, static_cast<size_t>(count));
  if (!unsent_.empty() || stage_ == Stage::streaming) return true;
  ::shutdown(socket_.get(), SHUT_WR);
  stage_ = Stage::draining;
  deadline_ = Clock::now() + kLongestDraining;
  return true;
}

bool Connection::discard_input() const {
  std::array<char, kReadBytes> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): recv fills it
  const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  return count > 0 || (count < 0 && try_again(errno));
}

}  // namespace lockstep::http
