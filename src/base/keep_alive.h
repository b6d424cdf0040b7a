// TCP keepalive: detects within a minute that a peer's machine has vanished, even if neither side writes. The peer's
// kernel answers, so computing or stopped processes are not mistaken for dead ones. HTTP/2 pings would need a thread
// that polls all the time.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <limits>
#include <optional>

namespace lockstep::base {

/// An idle connection is asked after `idle` seconds, and then every (60 - idle) / count seconds.
inline void keep_alive(int socket, int idle = 30, int count = 3) {
  const auto set = [socket](int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, idle);
  set(IPPROTO_TCP, TCP_KEEPINTVL, (60 - idle) / count);
  set(IPPROTO_TCP, TCP_KEEPCNT, count);
}

/// Returns the seconds since the machine at the other end last answered, if it has been asked since then: data were
/// sent again, or keepalive asks. Infinite: the connection has ended. A peer that does not read answers, too.
inline std::optional<double> unanswered(int socket) {
  tcp_info info{};
  socklen_t size = sizeof(info);
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  if (info.tcpi_state != TCP_ESTABLISHED) return std::numeric_limits<double>::infinity();
  if (info.tcpi_retransmits == 0 && info.tcpi_probes == 0) return std::nullopt;
  return info.tcpi_last_ack_recv / 1000.0;
}

}  // namespace lockstep::base
