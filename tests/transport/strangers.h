// Peers without a stream: raw connections to a server of this process.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "lockstep/error.h"

namespace lockstep::transport::testing {

inline base::FileHandle tcp_connection(int port) {
  base::FileHandle handle(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (::connect(handle.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    throw Error("connect");
  return handle;
}

inline void send_some(const base::FileHandle& handle, const std::string& bytes) {
  (void)!send(handle.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

/// Idle connections; counts how many of them the server keeps.
class Crowd {
 public:
  Crowd(int port, int size, const std::string& bytes = "") {
    for (int i = 0; i < size; ++i) {
      peers_.push_back(tcp_connection(port));
      if (!bytes.empty()) send_some(peers_.back(), bytes);
    }
  }
  [[nodiscard]] size_t kept() const {
    size_t kept = 0;
    for (const base::FileHandle& peer : peers_) {
      pollfd watched{.fd = peer.get(), .events = POLLRDHUP, .revents = 0};
      if (poll(&watched, 1, 0) == 0) ++kept;
    }
    return kept;
  }

 private:
  std::vector<base::FileHandle> peers_;
};

}  // namespace lockstep::transport::testing
