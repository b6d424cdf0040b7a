#include "authority/etcd_register.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "base/broken_pipe.h"
#include "lockstep/error.h"

namespace lockstep::authority {
namespace {

constexpr size_t kLargestAnswer = size_t{4} << 20U;
constexpr int kOk = 200;
constexpr std::chrono::milliseconds kLeastTime{300};  ///< for one server

std::string describe_etcd(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
      return "cannot connect";
    case httplib::Error::ConnectionTimeout:
      return "no connection in time";
    case httplib::Error::Read:
      return "no answer";
    case httplib::Error::Write:
      return "the request could not be sent";
    case httplib::Error::Canceled:
      return "its answer is too large, or does not end";
    case httplib::Error::SSLConnection:
      return "no TLS connection: it may speak plain HTTP, or want a certificate of this client";
    case httplib::Error::SSLLoadingCerts:
      return "the files of the certificates cannot be read";
    case httplib::Error::SSLServerVerification:
      return "its certificate is not trusted";
    default:
      return "failed (" + httplib::to_string(error) + ")";
  }
}

/// A wrong certificate or unreadable file does not mend itself.
bool is_final(httplib::Error error) {
  return error == httplib::Error::SSLLoadingCerts || error == httplib::Error::SSLServerVerification;
}

}  // namespace

class EtcdRegister::Connection {
 public:
  /// `limit` must outlive it.
  Connection(const EtcdOptions& options, size_t endpoint, TimeLimit& limit, Resolver& resolver)
      : endpoint_(endpoint), host_(options.address.endpoints[endpoint].host), limit_(limit), resolver_(resolver) {
    client_ = std::make_unique<httplib::Client>((options.authority.empty() ? "http://" : "https://") +
                                                    base::join_address(host_, options.address.endpoints[endpoint].port),
                                                options.certificate, options.key);
    client_->set_keep_alive(true);
    client_->set_follow_location(false);
    client_->set_socket_options([&limit](int socket) { limit.watch(socket); });
    if (options.authority.empty()) return;
    client_->set_ca_cert_path(options.authority.c_str());
    client_->enable_server_certificate_verification(true);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    const base::NoBrokenPipe no_signal;
    client_.reset();
    limit_.forget();
  }

  [[nodiscard]] size_t endpoint() const { return endpoint_; }

  /// Posts; `status` and `body` are what came. They may be whole although the result is an error: etcd ends the body of
  /// an error with trailers, which this library does not read. Returns in time, whatever the server does.
  httplib::Error post(const EtcdRequest& request, const std::string& token, Clock::time_point until,
                      const std::function<bool()>& given_up, int& status, std::string& body) {
    httplib::Error error = httplib::Error::Connection;
    if (addresses_.empty()) addresses_ = resolver_.resolve_until(host_, until, given_up);
    // A name may have several addresses; the first one that answers is used from then on.
    for (size_t tried = 0; tried < addresses_.size() && status == 0 && Clock::now() < until && !given_up(); ++tried) {
      client_->set_hostname_addr_map({{host_, addresses_.front()}});
      const auto part = (until - Clock::now()) / (addresses_.size() - tried);
      client_->set_connection_timeout(std::chrono::duration_cast<std::chrono::milliseconds>(part));
      error = post_once(request, token, until, status, body);
      const bool elsewhere = error == httplib::Error::Connection || error == httplib::Error::ConnectionTimeout;
      if (!elsewhere) break;
      std::rotate(addresses_.begin(), addresses_.begin() + 1, addresses_.end());
    }
    return error;
  }

 private:
  httplib::Error post_once(const EtcdRequest& request, const std::string& token, Clock::time_point until, int& status,
                           std::string& body) {
    const auto at_most = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    client_->set_read_timeout(at_most);
    client_->set_write_timeout(at_most);
    httplib::Request asked;
    asked.method = "POST";
    asked.path = request.path;
    asked.body = request.body;
    asked.headers = {{"Content-Type", "application/json"}, {"Accept-Encoding", "identity"}, {"User-Agent", "lockstep"}};
    if (!token.empty()) asked.headers.emplace("Authorization", token);
    asked.content_receiver = [&body](const char* data, size_t size, uint64_t, uint64_t) {
      if (body.size() + size > kLargestAnswer) return false;
      body.append(data, size);
      return true;
    };
    asked.response_handler = [&status](const httplib::Response& response) {
      status = response.status;
      return true;
    };
    limit_.begin(until);
    const httplib::Error error = client_->send(asked).error();
    return limit_.end() && error != httplib::Error::Success ? httplib::Error::Read : error;
  }

  const size_t endpoint_;
  const std::string host_;
  TimeLimit& limit_;
  Resolver& resolver_;
  std::vector<std::string> addresses_;  ///< addresses of the host, as numbers
  std::unique_ptr<httplib::Client> client_;
};

EtcdRegister::EtcdRegister(EtcdOptions options)
    : options_(std::move(options)),
      name_("etcd at " + options_.address.str()),
      key_(options_.address.prefix + "/" + options_.job),
      thread_([this](const Question& question) { return answer(question); }) {}

EtcdRegister::~EtcdRegister() {
  thread_.end();
  ending_ = true;
  limit_.stop();
}

void EtcdRegister::check_files(const EtcdOptions& options) {
  const auto refuse = [](const std::string& what) { throw UsageError(what); };
  for (const auto& [name, file] : {std::pair("etcd-ca", options.authority), std::pair("etcd-cert", options.certificate),
                                   std::pair("etcd-key", options.key)}) {
    if (!file.empty() && !std::ifstream(file)) refuse(fmt::format("{}: cannot read {}", name, file));
  }
  if (options.certificate.empty() != options.key.empty()) refuse("etcd-cert and etcd-key: one needs the other");
  if (!options.certificate.empty() && options.authority.empty()) refuse("etcd-cert: needs etcd-ca, too");
  if (!options.authority.empty() && !httplib::SSLClient("", 0, options.certificate, options.key).is_valid()) {
    refuse(fmt::format("etcd-cert: {} and {} are no certificate (PEM) with its key", options.certificate, options.key));
  }
}

/// Asks the servers one after the other, each for its part of the time.
Answer EtcdRegister::answer(const Question& question) {
  const Clock::time_point until = Clock::now() + options_.within;
  const size_t servers = options_.address.endpoints.size();
  std::string why;
  for (size_t tried = 0; tried < servers && !ending_; ++tried) {
    const size_t endpoint = (endpoint_ + tried) % servers;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
    if (left < kLeastTime) break;
    const Clock::time_point part = Clock::now() + std::max(left / static_cast<int>(servers - tried), kLeastTime);
    const base::Result<Answer> given = ask(question, endpoint, part);
    if (given) {
      endpoint_ = endpoint;
      return given.value();
    }
    connection_.reset();
    why = given.failure().text;
    if (servers > 1) {
      const base::Address& there = options_.address.endpoints[endpoint];
      why = base::join_address(there.host, there.port) + ": " + why;
    }
    if (given.failure().kind != base::FailureKind::usage) continue;
    return {Outcome::refused, {}, {.kind = base::FailureKind::usage, .text = name_ + ": " + why}, false};
  }
  endpoint_ = (endpoint_ + 1) % servers;
  return {Outcome::unanswered, {}, {.kind = base::FailureKind::unreachable, .text = name_ + ": " + why}, false};
}

base::Result<Answer> EtcdRegister::ask(const Question& question, size_t endpoint, Clock::time_point until) {
  const EtcdRequest request = question.swap ? etcd_swap(key_, *question.swap) : etcd_read(key_);
  for (int tries = 0;; ++tries) {
    if (token_.empty() && !options_.user.empty()) {
      const base::Status logged_in = log_in(endpoint, until);
      if (!logged_in) return logged_in.failure();
    }
    const base::Result<std::string> body = post(request, endpoint, until);
    if (body) return question.swap ? swap_answer(body.value(), key_, *question.swap) : read_answer(body.value(), key_);
    const bool token = body.failure().kind == base::FailureKind::refused && !options_.user.empty();
    if (!token || tries > 0) return body.failure();
    token_.clear();
  }
}

base::Status EtcdRegister::log_in(size_t endpoint, Clock::time_point until) {
  const base::Result<std::string> body = post(etcd_login(options_.user, options_.password), endpoint, until);
  if (!body) return body.failure();
  base::Result<std::string> token = login_answer(body.value());
  if (!token) return token.failure();
  token_ = std::move(token.value());
  return {};
}

base::Result<std::string> EtcdRegister::post(const EtcdRequest& request, size_t endpoint, Clock::time_point until) {
  const base::NoBrokenPipe no_signal;  // OpenSSL writes without MSG_NOSIGNAL
  if (!connection_ || connection_->endpoint() != endpoint) {
    connection_ = std::make_unique<Connection>(options_, endpoint, limit_, resolver_);
  }
  if (Clock::now() >= until) return base::Failure{.kind = base::FailureKind::timeout, .text = "no answer"};
  if (ending_) return base::Failure{.kind = base::FailureKind::interrupted, .text = "the end"};
  std::string body;
  int status = 0;
  const httplib::Error failed = connection_->post(
      request, token_, until, [this] { return ending_.load(); }, status, body);
  const bool whole = failed == httplib::Error::Success;
  if (!whole) connection_.reset();
  if (!whole && (status == 0 || status == kOk)) {
    const auto kind = is_final(failed) ? base::FailureKind::usage : base::FailureKind::unreachable;
    return base::Failure{.kind = kind, .text = describe_etcd(failed)};
  }
  if (status == kOk) return body;
  EtcdError error = etcd_error(status, body);
  const bool no_user = error.remedy == EtcdRemedy::log_in && options_.user.empty();
  if (error.remedy == EtcdRemedy::give_up || no_user)
    return base::Failure{.kind = base::FailureKind::usage, .text = error.text};
  if (error.remedy == EtcdRemedy::log_in) return base::Failure{.kind = base::FailureKind::refused, .text = error.text};
  return base::Failure{.kind = base::FailureKind::unreachable, .text = error.text};
}

}  // namespace lockstep::authority
