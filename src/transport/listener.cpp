#include "transport/listener.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "lockstep/error.h"

namespace lockstep::transport {
namespace {

constexpr int kBacklog = 512;

[[noreturn]] void refuse(const std::string& address, const std::string& why) {
  throw IoError(fmt::format("cannot listen at {}: {}", address, why));
}

struct FreeAddress {
  void operator()(addrinfo* info) const { freeaddrinfo(info); }
};
using AddressPtr = std::unique_ptr<addrinfo, FreeAddress>;

AddressPtr resolve(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) refuse(address, "it is not of the form host:port");
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), address.substr(colon + 1).c_str(), &hints, &found);
  if (error != 0) refuse(address, gai_strerror(error));
  return AddressPtr(found);
}

void set_option(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof(value));
}

}  // namespace

Listener::Listener(const std::string& address) : stop_(eventfd(0, EFD_CLOEXEC)) {
  const AddressPtr found = resolve(address);
  socket_ = base::FileHandle(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  set_option(socket_.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (found->ai_family == AF_INET6) set_option(socket_.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (!socket_.open() || bind(socket_.get(), found->ai_addr, found->ai_addrlen) != 0 ||
      listen(socket_.get(), kBacklog) != 0) {
    refuse(address, std::strerror(errno));
  }
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&bound), &length);
  port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(bound).sin6_port
                                            : reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

base::FileHandle Listener::accept() {
  while (true) {
    std::array<pollfd, 2> watched{{{socket_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
    if (poll(watched.data(), watched.size(), -1) < 0) continue;
    if (watched[1].revents != 0) return {};
    base::FileHandle accepted(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (accepted.open()) {
      set_option(accepted.get(), IPPROTO_TCP, TCP_NODELAY, 1);
      return accepted;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) usleep(20'000);  // others must end
  }
}

void Listener::stop() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof(one));
}

}  // namespace lockstep::transport
