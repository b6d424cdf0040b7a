#include "http/listen.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "lockstep/error.h"

namespace lockstep::http {
namespace {

constexpr int kBacklog = 64;

base::FileHandle try_listen(const addrinfo& at, int& error) {
  base::FileHandle made(::socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (made.open()) setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const bool listens =
      made.open() && ::bind(made.get(), at.ai_addr, at.ai_addrlen) == 0 && ::listen(made.get(), kBacklog) == 0;
  if (listens) return made;
  error = errno;
  return {};
}

}  // namespace

base::FileHandle listen_at(const base::Address& address, std::string_view who, std::string_view advice) {
  const std::string text = base::join_address(address.host, address.port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (failed != 0) throw IoError(fmt::format("{}: cannot listen at {}: {}", who, text, gai_strerror(failed)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  int error = 0;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    base::FileHandle made = try_listen(*at, error);
    if (made.open()) return made;
  }
  // NOLINTNEXTLINE(concurrency-mt-unsafe): glibc's is safe
  const std::string reason = strerror(error);
  throw IoError(fmt::format("{}: cannot listen at {}: {}{}", who, text, reason,
                            error == EADDRINUSE ? advice : std::string_view()));
}

int port_of(const base::FileHandle& listener) {
  sockaddr_storage name{};
  socklen_t length = sizeof(name);
  if (getsockname(listener.get(), reinterpret_cast<sockaddr*>(&name), &length) != 0) return 0;
  const in_port_t port = name.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(name).sin6_port
                                                    : reinterpret_cast<const sockaddr_in&>(name).sin_port;
  return ntohs(port);
}

}  // namespace lockstep::http
