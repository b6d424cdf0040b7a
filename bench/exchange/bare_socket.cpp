#include "bare_socket.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "lockstep/error.h"

namespace lockstep::bench {
namespace {

void no_delay(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

}  // namespace

void fail(const std::string& what) { throw Error(what + ": " + std::strerror(errno)); }

void send_all(int socket, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) fail("send");
    bytes = bytes.subspan(static_cast<size_t>(sent));
  }
}

bool receive_all(int socket, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = recv(socket, bytes.data(), bytes.size(), 0);
    if (got <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return true;
}

Listener::Listener() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address = loopback(0);
  socklen_t length = sizeof(address);
  if (bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(socket_.get(), 1) != 0) {
    fail("listen");
  }
  getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &length);
  port_ = ntohs(address.sin_port);
}

base::FileHandle Listener::accept() const {
  base::FileHandle socket(::accept(socket_.get(), nullptr, nullptr));
  no_delay(socket.get());
  return socket;
}

base::FileHandle connect_to(int port) {
  base::FileHandle socket(::socket(AF_INET, SOCK_STREAM, 0));
  const sockaddr_in address = loopback(port);
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) fail("connect");
  no_delay(socket.get());
  return socket;
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double best(const std::vector<double>& seconds) { return *std::min_element(seconds.begin(), seconds.end()); }

double median(std::vector<double> seconds) {
  const auto middle = seconds.begin() + static_cast<ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

}  // namespace lockstep::bench
