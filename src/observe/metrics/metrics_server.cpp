#include "observe/metrics/metrics_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>
#include <thread>

#include "base/address.h"
#include "base/file.h"
#include "base/signals.h"
#include "lockstep/error.h"
#include "observe/metrics/http_request.h"

namespace lockstep::observe {
namespace {

using base::FileHandle;
using Clock = std::chrono::steady_clock;

constexpr size_t kMostRequestBytes = 8192;
constexpr size_t kMostConnections = 32;
constexpr std::chrono::seconds kLongest{5};
constexpr int kBacklog = 16;

constexpr int kOk = 200;
constexpr int kBadRequest = 400;
constexpr int kNotFound = 404;
constexpr int kNotAllowed = 405;
constexpr int kTooLarge = 431;
constexpr int kFailed = 500;

constexpr std::string_view kPlain = "text/plain; charset=utf-8";
constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";
constexpr std::string_view kPage =
    "<!DOCTYPE html><title>Lockstep</title><p>Figures of this process, for Prometheus: "
    "<a href=\"/metrics\">/metrics</a></p>\n";

struct Connection {
  FileHandle socket;
  Clock::time_point until;
  std::string request;
  std::string response;
  size_t sent = 0;
};

FileHandle try_listen(const addrinfo& at, int& error) {
  FileHandle made(::socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (made.open()) setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  const bool listens =
      made.open() && ::bind(made.get(), at.ai_addr, at.ai_addrlen) == 0 && ::listen(made.get(), kBacklog) == 0;
  if (listens) return made;
  error = errno;
  return {};
}

FileHandle listen_at(const std::string& text, const base::Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (failed != 0) throw IoError(fmt::format("metrics: cannot listen at {}: {}", text, gai_strerror(failed)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, freeaddrinfo);
  int error = 0;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    FileHandle made = try_listen(*at, error);
    if (made.open()) return made;
  }
  throw IoError(
      fmt::format("metrics: cannot listen at {}: {}", text, strerror(error)));  // NOLINT(concurrency-mt-unsafe)
}

int port_of(const FileHandle& socket) {
  sockaddr_storage name{};
  socklen_t length = sizeof(name);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&name), &length) != 0) return 0;
  const in_port_t port = name.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(name).sin6_port
                                                    : reinterpret_cast<const sockaddr_in&>(name).sin_port;
  return ntohs(port);
}

base::Address parse(const std::string& address) {
  try {
    return base::parse_address(address, 0);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("metrics: {}", error.what()));
  }
}

}  // namespace

bool is_loopback_address(const std::string& address) { return base::is_loopback(parse(address).host); }

class MetricsServer::Impl {
 public:
  Impl(const std::string& address, Figures figures)
      : figures_(std::move(figures)),
        listener_(listen_at(address, parse(address))),
        stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        port_(port_of(listener_)) {
    if (!stop_.open()) base::throw_io_error("serve", address, errno);
    const base::SignalsBlocked blocked;
    thread_ = std::thread([this] { run(); });
  }
  ~Impl() {
    const uint64_t one = 1;
    (void)!::write(stop_.get(), &one, sizeof(one));
    thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] int port() const { return port_; }

 private:
  void run();
  /// Until something can be done or a connection's time is over; false: to stop.
  bool wait();
  void accept_one();
  /// Goes on with one; false: it is over.
  bool advance(Connection& connection);
  bool receive(Connection& connection);
  static bool send(Connection& connection);
  std::string answer(std::string_view request);
  std::string metrics(bool head);

  const Figures figures_;
  const FileHandle listener_;
  const FileHandle stop_;
  const int port_;
  std::list<Connection> connections_;  ///< the oldest first
  std::vector<pollfd> polled_;
  std::thread thread_;
};

void MetricsServer::Impl::run() {
  pthread_setname_np(pthread_self(), "metrics");
  while (wait()) {
    if ((polled_[1].revents & POLLIN) != 0) accept_one();
    connections_.remove_if([this](Connection& one) { return Clock::now() >= one.until || !advance(one); });
  }
}

bool MetricsServer::Impl::wait() {
  polled_.assign({{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}});
  for (const Connection& one : connections_) {
    polled_.push_back({one.socket.get(), static_cast<short>(one.response.empty() ? POLLIN : POLLOUT), 0});
  }
  int timeout = -1;
  if (!connections_.empty()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(connections_.front().until - Clock::now());
    timeout = static_cast<int>(std::max<int64_t>(0, left.count()));
  }
  ::poll(polled_.data(), polled_.size(), timeout);
  return polled_[0].revents == 0;
}

void MetricsServer::Impl::accept_one() {
  FileHandle socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.open()) {
    const bool used_up = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (used_up) std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it would be reported again at once
    return;
  }
  if (connections_.size() >= kMostConnections) connections_.pop_front();
  Connection& made = connections_.emplace_back();
  made.socket = std::move(socket);
  made.until = Clock::now() + kLongest;
}

bool MetricsServer::Impl::advance(Connection& connection) {
  if (connection.response.empty() && !receive(connection)) return false;
  return connection.response.empty() || send(connection);
}

bool MetricsServer::Impl::receive(Connection& connection) {
  std::array<char, kMostRequestBytes> buffer{};
  const ssize_t count = ::recv(connection.socket.get(), buffer.data(), buffer.size(), 0);
  if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  if (count == 0) return false;
  connection.request.append(buffer.data(), static_cast<size_t>(count));
  if (is_whole_request(connection.request)) {
    connection.response = answer(connection.request);
  } else if (connection.request.size() > kMostRequestBytes) {
    connection.response = http_response(kTooLarge, kPlain, "the request is too large\n", false);
  }
  return true;
}

bool MetricsServer::Impl::send(Connection& connection) {
  const std::string_view rest = std::string_view(connection.response).substr(connection.sent);
  const ssize_t count = ::send(connection.socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
  if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  connection.sent += static_cast<size_t>(count);
  if (connection.sent < connection.response.size()) return true;
  ::shutdown(connection.socket.get(), SHUT_WR);
  return false;
}

std::string MetricsServer::Impl::answer(std::string_view text) {
  const std::optional<HttpRequest> request = parse_request(text);
  if (!request) return http_response(kBadRequest, kPlain, "this is no HTTP request\n", false);
  const bool head = request->method == "HEAD";
  if (!head && request->method != "GET") return http_response(kNotAllowed, kPlain, "only GET is served\n", false);
  if (request->path == "/metrics") return metrics(head);
  if (request->path == "/") return http_response(kOk, "text/html; charset=utf-8", kPage, head);
  return http_response(kNotFound, kPlain, "there is only /metrics\n", head);
}

std::string MetricsServer::Impl::metrics(bool head) {
  try {
    return http_response(kOk, kMetricsType, prometheus_text(figures_()), head);
  } catch (const std::exception& error) {
    return http_response(kFailed, kPlain, std::string(error.what()) + "\n", head);
  }
}

MetricsServer::MetricsServer(const std::string& address, Figures figures)
    : impl_(std::make_unique<Impl>(address, std::move(figures))) {}
MetricsServer::~MetricsServer() = default;
int MetricsServer::port() const { return impl_->port(); }

}  // namespace lockstep::observe
