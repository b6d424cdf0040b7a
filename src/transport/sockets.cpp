#include "transport/sockets.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/keep_alive.h"
#include "lockstep/error.h"

namespace lockstep::transport {
namespace {

constexpr int kBacklog = 512;

constexpr int kProbeMs = 300;

constexpr rlim_t kSpareFiles = 8;

struct FreeAddress {
  void operator()(addrinfo* info) const { freeaddrinfo(info); }
};
using AddressPtr = std::unique_ptr<addrinfo, FreeAddress>;

/// Resolves an address. Returns null and the reason in `why` if that fails.
AddressPtr resolve(const std::string& address, int flags, std::string& why) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    why = "it is not of the form host:port";
    return nullptr;
  }
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = flags | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints, &found);
  if (error != 0) why = gai_strerror(error);
  return AddressPtr(error == 0 ? found : nullptr);
}

base::FileHandle make_socket(const addrinfo& address) {
  return base::FileHandle(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// Tries a TCP connection. Returns 0 if it succeeds, EINPROGRESS if there is no answer, else the error.
int connect_error(const addrinfo& address) {
  const base::FileHandle socket = make_socket(address);
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) return 0;
  int error = errno;
  if (error != EINPROGRESS) return error;
  pollfd watched{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  if (poll(&watched, 1, kProbeMs) <= 0) return EINPROGRESS;
  socklen_t length = sizeof(error);
  getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

void set_option(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof(value));
}

using NameFunction = int (*)(int, sockaddr*, socklen_t*);

/// Returns "127.0.0.1:4000", also if an IPv6 socket speaks IPv4; empty if it is not such a socket.
std::string name_of(int socket, NameFunction function) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (function(socket, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "";
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "";
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host, sizeof(host), port, sizeof(port),
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "";
  }
  std::string name = host;
  if (name.starts_with("::ffff:")) name.erase(0, 7);
  return name.find(':') == std::string::npos ? name + ":" + port : "[" + name + "]:" + port;
}

}  // namespace

Listener::Listener(const std::string& address) {
  std::string why;
  const AddressPtr found = resolve(address, AI_PASSIVE, why);
  if (!found) throw IoError(fmt::format("cannot listen at {}: {}", address, why));
  socket_ = make_socket(*found);
  set_option(socket_.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (found->ai_family == AF_INET6) set_option(socket_.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (!socket_.open() || bind(socket_.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(socket_.get(), kBacklog) != 0) {
    throw IoError(fmt::format("cannot listen at {}: {}", address, std::strerror(errno)));
  }
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&bound), &length);
  port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                            : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

base::FileHandle Listener::accept(int& error) {
  base::FileHandle accepted(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  error = accepted.open() ? 0 : errno;
  rlimit files{};
  // gRPC needs a few more files for a connection, and ends the process if it gets none.
  if (accepted.open() && getrlimit(RLIMIT_NOFILE, &files) == 0 &&
      static_cast<rlim_t>(accepted.get()) + kSpareFiles > files.rlim_cur) {
    error = EMFILE;
    return {};
  }
  if (accepted.open()) {
    set_option(accepted.get(), IPPROTO_TCP, TCP_NODELAY, 1);
    base::keep_alive(accepted.get());
  }
  return accepted;
}

std::string peer_of(int socket) { return name_of(socket, getpeername); }

std::string why_unreachable(const std::string& address) {
  std::string why;
  const AddressPtr found = resolve(address, 0, why);
  if (!found) return fmt::format("the host cannot be found: {}", why);
  const int error = connect_error(*found);
  if (error == EINPROGRESS) return "the host does not answer";
  if (error == ECONNREFUSED) return "connection refused: no process listens there";
  return error == 0 ? "" : std::strerror(error);
}

bool refuses(const std::string& address) {
  std::string why;
  const AddressPtr found = resolve(address, 0, why);
  for (const addrinfo* at = found.get(); at != nullptr; at = at->ai_next) {
    if (connect_error(*at) != ECONNREFUSED) return false;
  }
  return found != nullptr;
}

base::FileHandle find_connection(const std::string& local, const std::string& remote) {
  const auto matches = [&](int fd) { return name_of(fd, getsockname) == local && name_of(fd, getpeername) == remote; };
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const int fd = std::stoi(entry.path().filename());
    if (!matches(fd)) continue;
    base::FileHandle handle(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (handle.open() && matches(handle.get())) return handle;  // the number may have been reused meanwhile
  }
  return {};
}

}  // namespace lockstep::transport
