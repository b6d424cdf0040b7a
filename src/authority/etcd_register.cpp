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
  Connection(const EtcdOptions& options, size_t endpoint)
      : endpoint_(endpoint),
        client_(
            (options.authority.empty() ? "http://" : "https://") +
                base::join_address(options.address.endpoints[endpoint].host, options.address.endpoints[endpoint].port),
            options.certificate, options.key) {
    client_.set_keep_alive(true);
    client_.set_follow_location(false);
    if (options.authority.empty()) return;
    client_.set_ca_cert_path(options.authority.c_str());
    client_.enable_server_certificate_verification(true);
  }

  [[nodiscard]] size_t endpoint() const { return endpoint_; }

  /// Posts; `status` and `body` are what came. They may be whole although the result is an error: etcd ends the body of
  /// an error with trailers, which this library does not read.
  httplib::Error post(const EtcdRequest& request, const std::string& token, std::chrono::milliseconds at_most,
                      int& status, std::string& body) {
    client_.set_connection_timeout(at_most);
    client_.set_read_timeout(at_most);
    client_.set_write_timeout(at_most);
    httplib::Request asked;
    asked.method = "POST";
    asked.path = request.path;
    asked.body = request.body;
    asked.headers = {{"Content-Type", "application/json"}, {"Accept-Encoding", "identity"}, {"User-Agent", "lockstep"}};
    if (!token.empty()) asked.headers.emplace("Authorization", token);
    const Clock::time_point until = Clock::now() + at_most;
    asked.content_receiver = [&body, until](const char* data, size_t size, uint64_t, uint64_t) {
      if (body.size() + size > kLargestAnswer || Clock::now() > until) return false;
      body.append(data, size);
      return true;
    };
    asked.response_handler = [&status](const httplib::Response& response) {
      status = response.status;
      return true;
    };
    return client_.send(asked).error();
  }
  /// Ends a question under way. Any thread.
  void stop() { client_.stop(); }

 private:
  const size_t endpoint_;
  httplib::Client client_;
};

EtcdRegister::EtcdRegister(EtcdOptions options)
    : options_(std::move(options)),
      name_("etcd at " + options_.address.str()),
      key_(options_.address.prefix + "/" + options_.job),
      thread_([this](const Question& question) { return answer(question); }) {}

EtcdRegister::~EtcdRegister() {
  const base::MutexLock lock(mutex_);
  ending_ = true;
  if (asking_) asking_->stop();
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
  const Clock::time_point until = Clock::now() + kAnswerWithin * 9 / 10;
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
    connection_ = std::make_unique<Connection>(options_, endpoint);
  }
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
  if (left.count() <= 0) return base::Failure{.kind = base::FailureKind::timeout, .text = "no answer"};
  if (!set_asking(connection_.get())) return base::Failure{.kind = base::FailureKind::interrupted, .text = "the end"};
  std::string body;
  int status = 0;
  const httplib::Error failed = connection_->post(request, token_, left, status, body);
  set_asking(nullptr);
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

/// Returns false if this client ends.
bool EtcdRegister::set_asking(Connection* connection) {
  const base::MutexLock lock(mutex_);
  asking_ = connection;
  return !ending_;
}

}  // namespace lockstep::authority
