// TCP sockets: listening, and why an address cannot be reached. Internal.
#pragma once

#include <string>

#include "base/file.h"

namespace lockstep::transport {

class Listener {
 public:
  /// At "host:port", "[::1]:port"; port 0: any free one. Throws IoError naming the address and the reason.
  explicit Listener(const std::string& address);

  [[nodiscard]] int port() const { return port_; }

  /// The next connection; none after `stop`.
  base::FileHandle accept();
  /// Any thread.
  void stop();

 private:
  base::FileHandle socket_;
  base::FileHandle stop_;  ///< an eventfd that ends the wait
  int port_ = 0;
};

/// The system's reason why no TCP connection to "host:port" can be had; empty where one can. Takes a fraction of a
/// second at most.
std::string why_unreachable(const std::string& address);

/// This process's connection between two addresses, as one more handle of its socket: gRPC does not give out those
/// that it makes. None where there is no such connection (an address was translated on the way).
base::FileHandle find_connection(const std::string& local, const std::string& remote);

}  // namespace lockstep::transport
