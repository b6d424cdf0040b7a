// A bare TCP connection on loopback, the baseline of exchanges, and times of both.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"

namespace lockstep::bench {

using Clock = std::chrono::steady_clock;
using Buffer = std::vector<std::byte>;

/// Throws Error with the text of errno.
[[noreturn]] void fail(const std::string& what);

void send_all(int socket, std::span<const std::byte> bytes);
/// Returns false if the other side has ended.
bool receive_all(int socket, std::span<std::byte> bytes);

/// Listens on a free port.
class Listener {
 public:
  Listener();
  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] base::FileHandle accept() const;

 private:
  base::FileHandle socket_;
  int port_ = 0;
};

base::FileHandle connect_to(int port);

double seconds_since(Clock::time_point start);
double best(const std::vector<double>& seconds);
double median(std::vector<double> seconds);

}  // namespace lockstep::bench
