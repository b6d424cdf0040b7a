// Network addresses as texts: "host:port", or "[::1]:4000" for IPv6. Makes no network calls. Free functions; any
// thread.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::base {

struct Address {
  std::string host;  ///< without the brackets of an IPv6 address
  int port = 0;
};
/// Parses HOST:PORT, or [HOST]:PORT for IPv6. Throws UsageError otherwise. Pass a least port of 0 to allow listening at
/// any free port.
Address parse_address(std::string_view text, int least_port = 1);
/// Returns "host:port", with brackets if the host contains colons.
std::string join_address(std::string_view host, int port);

/// Returns true if the text has the form of a host name or address. The host need not exist.
bool is_host(std::string_view host);
/// Returns true for an IPv4 or IPv6 address, false for a name.
bool is_ip_address(std::string_view host);
/// Returns true for a loopback name or address.
bool is_loopback(std::string_view host);

}  // namespace lockstep::base
