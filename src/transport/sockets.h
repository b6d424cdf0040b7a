// TCP sockets: listening, and reasons why an address cannot be reached. Internal.
#pragma once

#include <string>

#include "base/file.h"

namespace lockstep::transport {

class Listener {
 public:
  /// Listens at "host:port" or "[::1]:port"; port 0: any free one. Throws IoError naming the address and the reason.
  explicit Listener(const std::string& address);

  [[nodiscard]] int port() const { return port_; }

  /// Socket to poll for connections.
  [[nodiscard]] int socket() const { return socket_.get(); }
  /// Accepts a pending connection without waiting. If there is none, `error` says why.
  base::FileHandle accept(int& error);

 private:
  base::FileHandle socket_;
  int port_ = 0;
};

/// Returns the other end of a connection: "127.0.0.1:4000".
std::string peer_of(int socket);

/// Returns the system's reason why "host:port" cannot be reached over TCP; empty if it can. Takes a fraction of a
/// second at most.
std::string why_unreachable(const std::string& address);

/// Finds this process's connection between two addresses and returns another handle of its socket; gRPC does not give
/// out its sockets. Returns none if there is no such connection (for instance, behind address translation).
base::FileHandle find_connection(const std::string& local, const std::string& remote);

}  // namespace lockstep::transport
