#include "base/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "lockstep/error.h"

namespace lockstep::base {
namespace {

constexpr size_t kLongestHost = 253;
constexpr size_t kMostShown = 80;
constexpr int kLargestPort = 65535;

/// Returns the number if the text is digits only, else -1.
int digits_value(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size() && text[0] != '-';
  return whole ? number : -1;
}

bool is_ipv6(std::string_view host) {
  const std::string plain(host.substr(0, host.find('%')));  // a zone, as in fe80::1%eth0
  in6_addr address{};
  return ::inet_pton(AF_INET6, plain.c_str(), &address) == 1;
}

bool is_ipv4(std::string_view host) {
  in_addr address{};
  return ::inet_pton(AF_INET, std::string(host).c_str(), &address) == 1;
}

[[noreturn]] void reject_address(std::string_view text, const char* what) {
  throw UsageError(
      fmt::format("'{}' {}; an address is HOST:PORT, for IPv6 [HOST]:PORT", text.substr(0, kMostShown), what));
}

}  // namespace

Address parse_address(std::string_view text, int least_port) {
  const bool bracketed = text.starts_with('[');
  const size_t colon = bracketed ? text.find("]:") + 1 : text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    reject_address(text, text.starts_with(':') ? "has no host" : "has no port");
  }
  const std::string_view host = bracketed ? text.substr(1, colon - 2) : text.substr(0, colon);
  if (!bracketed && host.find(':') != std::string_view::npos) reject_address(text, "has more than one colon");
  if (!is_host(host) || bracketed != (host.find(':') != std::string_view::npos))
    reject_address(text, "has no valid host");
  const int port = digits_value(text.substr(colon + 1));
  if (port < least_port || port > kLargestPort) {
    reject_address(text, least_port == 0 ? "has no port from 0 to 65535" : "has no port from 1 to 65535");
  }
  return {std::string(host), port};
}

std::string join_address(std::string_view host, int port) {
  const bool bracketed = host.find(':') != std::string_view::npos;
  return fmt::format("{}{}{}:{}", bracketed ? "[" : "", host, bracketed ? "]" : "", port);
}

bool is_host(std::string_view host) {
  if (host.empty() || host.size() > kLongestHost) return false;
  if (host.find(':') != std::string_view::npos) return is_ipv6(host);
  const auto allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_'; };
  if (!std::all_of(host.begin(), host.end(), allowed) || host.front() == '-' || host.front() == '.') return false;
  // A text that ends in a number is an IPv4 address, not a name.
  const std::string_view last = host.substr(host.rfind('.') + 1);
  const bool number = host.find('.') != std::string_view::npos && digits_value(last) >= 0;
  return !number || is_ipv4(host);
}

bool is_ip_address(std::string_view host) { return is_ipv4(host) || is_ipv6(host); }

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "::1" || (host.starts_with("127.") && is_ipv4(host));
}

}  // namespace lockstep::base
