// Clients of a web server over plain sockets, for requests that break the rules.
#pragma once

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <string>
#include <string_view>

#include "base/file.h"

namespace lockstep::testing {

/// A connection to a port of this machine.
class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  }

  [[nodiscard]] bool connected() const { return connected_; }

  bool send(std::string_view text) const {
    return ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }

  /// Reads until the server ends the connection, or `wanted` has arrived.
  std::string read(std::string_view wanted = {}, std::chrono::milliseconds patience = std::chrono::seconds(100)) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (!ended_ && (wanted.empty() || text_.find(wanted) == std::string::npos)) {
      pollfd waits{socket_.get(), POLLIN, 0};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      if (left.count() <= 0 || ::poll(&waits, 1, static_cast<int>(left.count())) <= 0) return text_ + "[no end]";
      read_some();
    }
    return text_;
  }

  /// Returns the bytes read so far, after waiting for up to 64 kB more.
  const std::string& read_some() {
    std::array<char, 65536> buffer{};
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    ended_ = count <= 0;
    if (!ended_) text_.append(buffer.data(), static_cast<size_t>(count));
    return text_;
  }
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  base::FileHandle socket_;
  bool connected_ = false;
  bool ended_ = false;
  std::string text_;
};

inline std::string ask(int port, std::string_view text) {
  Client client(port);
  client.send(text);
  return client.read();
}

inline std::string get(int port, std::string_view path, std::string_view headers = "Host: localhost\r\n") {
  return ask(port, fmt::format("GET {} HTTP/1.1\r\n{}\r\n", path, headers));
}

inline int status_of(const std::string& response) {
  return response.starts_with("HTTP/1.1 ") ? std::stoi(response.substr(9, 3)) : 0;
}

inline std::string body_of(const std::string& response) {
  const size_t at = response.find("\r\n\r\n");
  return at == std::string::npos ? "" : response.substr(at + 4);
}

}  // namespace lockstep::testing
