// Who may ask. On loopback the `Host` of a request must be this machine, so that a page from elsewhere cannot reach the
// server under a name of its own that leads here. With a token every request must carry it: as ?token=, which a browser
// then keeps as a cookie. Constant; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"

namespace lockstep::dash {

class Access {
 public:
  /// An empty token: none is asked for. Throws UsageError for one that is short or not fit for a URL, and where there
  /// is none and the host is not loopback.
  Access(const std::string& host, std::string token, int port);

  /// What to answer instead of the page: a refusal, or the way on once the cookie is set.
  [[nodiscard]] std::optional<http::Response> refusal(const http::Request& request) const;

  /// The page's address, with the token.
  [[nodiscard]] std::string url() const;

 private:
  std::string host_;
  std::string token_;
  int port_ = 0;
  bool loopback_ = true;
};

/// Takes the same time wherever two texts of one length differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace lockstep::dash
