// A dashboard that serves, and clients of it over plain sockets, which may misbehave.
#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <future>
#include <string>
#include <string_view>
#include <thread>

#include "base/file.h"
#include "dash/dash.h"

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

  /// Until the other side ends, or `wanted` has come.
  std::string read(std::string_view wanted = {}, std::chrono::seconds patience = std::chrono::seconds(30)) {
    const auto end = std::chrono::steady_clock::now() + patience;
    while (wanted.empty() || text_.find(wanted) == std::string::npos) {
      pollfd waits{socket_.get(), POLLIN, 0};
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      if (left.count() <= 0 || ::poll(&waits, 1, static_cast<int>(left.count())) <= 0) return text_ + "[no end]";
      std::array<char, 65536> buffer{};
      const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
      if (count <= 0) break;
      text_.append(buffer.data(), static_cast<size_t>(count));
    }
    return text_;
  }

 private:
  base::FileHandle socket_;
  bool connected_ = false;
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

/// `dash::serve` on a thread, until it goes.
class Served {
 public:
  explicit Served(dash::Options options) : stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    options.port = 0;
    options.stop = stop_.get();
    std::promise<std::string> ready;
    std::future<std::string> address = ready.get_future();
    thread_ = std::thread([options, &ready] {
      try {
        dash::serve(options, [&](const std::string& url) { ready.set_value(url); });
      } catch (...) {
        ready.set_exception(std::current_exception());
      }
    });
    try {
      url_ = address.get();
    } catch (...) {
      thread_.join();
      throw;
    }
  }
  ~Served() { end(); }
  Served(const Served&) = delete;
  Served& operator=(const Served&) = delete;

  void end() {
    const uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof(one));
    if (thread_.joinable()) thread_.join();
  }

  [[nodiscard]] const std::string& url() const { return url_; }
  [[nodiscard]] int port() const {
    const size_t colon = url_.find(':', 7);
    return std::stoi(url_.substr(colon + 1));
  }

 private:
  base::FileHandle stop_;
  std::string url_;
  std::thread thread_;
};

}  // namespace lockstep::testing
