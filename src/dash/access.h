// Decides which requests are answered. On loopback the `Host` of a request must be this machine, so that a foreign page
// cannot reach the server under a name of its own that resolves to it. With a token, every request must carry it: first
// as ?token=, then as a cookie that the browser keeps. Constant; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"

namespace lockstep::dash {

class Access {
 public:
  /// An empty token means that none is needed. Throws UsageError for a token that is too short or does not fit into a
  /// URL, and for a missing token if the host is not loopback.
  Access(const std::string& host, std::string token, int port);

  /// Returns the answer to send instead of the page: a refusal, or a redirect that sets the cookie.
  [[nodiscard]] std::optional<http::Response> refusal(const http::Request& request) const;

  /// Returns the page's address, with the token.
  [[nodiscard]] std::string url() const;

 private:
  std::string host_;
  std::string token_;
  int port_ = 0;
  bool loopback_ = true;
};

/// Compares texts; two texts of one length take the same time wherever they differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace lockstep::dash
