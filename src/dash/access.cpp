#include "dash/access.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>

#include "base/address.h"
#include "base/file.h"
#include "base/host.h"
#include "dash/dash.h"
#include "lockstep/error.h"

namespace lockstep::dash {
namespace {

constexpr size_t kShortestToken = 16;
constexpr size_t kLongestToken = 256;

bool is_token(std::string_view token) {
  return token.size() >= kShortestToken && token.size() <= kLongestToken &&
         std::all_of(token.begin(), token.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.' || c == '~';
         });
}

/// Returns the host of a header: "LocalHost:6007" -> "localhost", "[::1]:6007" -> "::1".
std::string host_part(std::string_view header) {
  if (header.starts_with('[')) {
    const size_t end = header.find(']');
    return end == std::string_view::npos ? "" : std::string(header.substr(1, end - 1));
  }
  std::string host(header.substr(0, header.find(':')));
  std::transform(host.begin(), host.end(), host.begin(), [](unsigned char c) { return std::tolower(c); });
  return host;
}

std::string cookie_name(int port) { return fmt::format("lockstep-dash-{}", port); }

}  // namespace

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char different = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    different =
        static_cast<unsigned char>(different | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i])));
  }
  return different == 0;
}

std::string make_token() {
  std::array<uint8_t, 16> bytes{};
  if (getentropy(bytes.data(), bytes.size()) != 0) base::throw_io_error("read", "random bytes", errno);
  std::string token;
  for (const uint8_t byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

Access::Access(const std::string& host, std::string token, int port)
    : host_(host), token_(std::move(token)), port_(port), loopback_(base::is_loopback(host)) {
  if (token_.empty() && !loopback_)
    throw UsageError(fmt::format("dash: host '{}' can be reached from other machines and needs a token", host));
  if (!token_.empty() && !is_token(token_)) {
    throw UsageError(
        fmt::format("dash: the token takes {} to {} letters, digits or any of -_.~; this one has {} characters",
                    kShortestToken, kLongestToken, token_.size()));
  }
}

std::optional<http::Response> Access::refusal(const http::Request& request) const {
  if (loopback_ && !base::is_loopback(host_part(request.header("host")))) {
    return http::plain_response(403, "this page is only served under the name localhost");
  }
  if (token_.empty()) return std::nullopt;
  if (equal_in_constant_time(request.cookie(cookie_name(port_)), token_)) return std::nullopt;
  if (!equal_in_constant_time(request.parameter("token"), token_)) {
    return http::plain_response(401, "a token is needed: open the address that `lockstep dash` printed");
  }
  if (!request.path.empty()) return std::nullopt;
  http::Response onward = http::plain_response(303, "");
  onward.headers = {{"Location", "/"},
                    {"Set-Cookie", fmt::format("{}={}; Path=/; HttpOnly; SameSite=Lax", cookie_name(port_), token_)}};
  return onward;
}

std::string Access::url() const {
  const bool everywhere = host_ == "0.0.0.0" || host_ == "::";
  const std::string name = everywhere ? base::host_name() : host_;
  const std::string address = fmt::format("http://{}/", base::join_address(name, port_));
  return token_.empty() ? address : address + "?token=" + token_;
}

}  // namespace lockstep::dash
