// Helpers for tests of streams: payloads, an echo, connections to a server of this process.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "lockstep/error.h"
#include "transport/stream.h"

namespace lockstep::transport::testing {

inline std::vector<std::byte> pattern(size_t size, unsigned seed = 1) {
  std::vector<std::byte> bytes(size);
  unsigned state = seed;
  for (std::byte& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24U);
  }
  return bytes;
}

inline std::vector<std::byte> payload_of(const Frame& frame) {
  std::vector<std::byte> bytes(frame.payload_size());
  frame.copy_to(bytes);
  return bytes;
}

inline std::string address_of(const Server& server) { return "127.0.0.1:" + std::to_string(server.port()); }

inline std::unique_ptr<Stream> connected(const std::string& address, ConnectOptions options = {}) {
  options.patience = std::chrono::seconds(100);
  return connect(address, options).value_or_throw();
}

inline std::unique_ptr<Stream> connected(const Server& server, const ConnectOptions& options = {}) {
  return connected(address_of(server), options);
}

/// Sends every frame back unchanged, from the memory in which it arrived.
inline void echo(Stream& stream) {
  while (true) {
    base::Result<Frame> frame = stream.read();
    if (!frame) return;
    const auto held = std::make_shared<Frame>(std::move(frame.value()));
    if (!stream.write(held->header, held->pieces(), held)) return;
  }
}

/// Waits until `holds` returns true; checks often and has a long limit.
template <class Condition>
bool eventually(const Condition& holds, std::chrono::seconds at_most = std::chrono::seconds(100)) {
  const auto until = std::chrono::steady_clock::now() + at_most;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// Reserves a loopback port, any or a given one, for servers that start later or restart. No other process gets it, and
/// connections are refused while no server runs.
class KeptPort {
 public:
  explicit KeptPort(int port = 0) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));  // as servers do
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<uint16_t>(port));
    socklen_t length = sizeof(address);
    if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) throw IoError("bind");
    getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &length);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  base::FileHandle socket_;
  std::string address_;
};

inline size_t entries(const std::string& folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}
inline size_t threads_here() { return entries("/proc/self/task"); }
inline size_t files_here() { return entries("/proc/self/fd"); }

inline ServerOptions any_port() { return {.address = "127.0.0.1:0", .security = {}}; }

}  // namespace lockstep::transport::testing
