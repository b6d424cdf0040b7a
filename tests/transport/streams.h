// What the tests of streams share: payloads, an echo, connections to a server of this process.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

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
  options.patience = std::chrono::seconds(30);
  return connect(address, options).value_or_throw();
}

inline std::unique_ptr<Stream> connected(const Server& server, const ConnectOptions& options = {}) {
  return connected(address_of(server), options);
}

/// Sends every frame back as it came, from the memory that it came in.
inline void echo(Stream& stream) {
  while (true) {
    base::Result<Frame> frame = stream.read();
    if (!frame) return;
    const auto held = std::make_shared<Frame>(std::move(frame.value()));
    if (!stream.write(held->header, held->pieces(), held)) return;
  }
}

/// Whether `holds` becomes true; looks often and gives up late.
template <class Condition>
bool eventually(const Condition& holds, std::chrono::seconds at_most = std::chrono::seconds(30)) {
  const auto until = std::chrono::steady_clock::now() + at_most;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

inline size_t entries(const std::string& folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}
inline size_t threads_here() { return entries("/proc/self/task"); }
inline size_t files_here() { return entries("/proc/self/fd"); }

inline ServerOptions any_port() { return {.address = "127.0.0.1:0", .security = {}}; }

}  // namespace lockstep::transport::testing
