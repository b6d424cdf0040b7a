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

  /// To wait for connections.
  [[nodiscard]] int socket() const { return socket_.get(); }
  /// A connection that waits, without waiting for one; else `error` says why there is none.
  base::FileHandle accept(int& error);

 private:
  base::FileHandle socket_;
  int port_ = 0;
};

/// "127.0.0.1:4000": the other end of a connection.
std::string peer_of(int socket);

/// The system's reason why no TCP connection to "host:port" can be had; empty where one can. Takes a fraction of a
/// second at most.
std::string why_unreachable(const std::string& address);

/// This process's connection between two addresses, as one more handle of its socket: gRPC does not give out those
/// that it makes. None where there is no such connection (an address was translated on the way).
base::FileHandle find_connection(const std::string& local, const std::string& remote);

}  // namespace lockstep::transport
