// Network addresses as texts: "host:port", an IPv6 one "[::1]:4000". Nothing here asks the network. Free functions; any
// thread.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::base {

struct Address {
  std::string host;  ///< without the brackets of an IPv6 address
  int port = 0;
};
/// Throws UsageError: '10.0.0.1' has no port; an address is HOST:PORT, for IPv6 [HOST]:PORT.
/// A least port of 0 is for those who listen at any free one.
Address parse_address(std::string_view text, int least_port = 1);
/// "host:port", with brackets where the host has colons.
std::string join_address(std::string_view host, int port);

/// Whether the host is a name or address that a connection can be made to; says nothing of whether it exists.
bool is_host(std::string_view host);
/// Whether it is an IPv4 or IPv6 address, not a name.
bool is_ip_address(std::string_view host);
/// Whether it is a name or address that a machine has for itself alone.
bool is_loopback(std::string_view host);

}  // namespace lockstep::base
