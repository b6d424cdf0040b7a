// The little of HTTP that serving figures takes. Pure functions over texts; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::observe {

struct HttpRequest {
  std::string method;
  std::string path;  ///< without what follows a '?'
};

/// Whether all of its header is there.
bool is_whole_request(std::string_view text);
/// Of a whole one; nothing where it is no request.
std::optional<HttpRequest> parse_request(std::string_view text);

/// A whole response, after which the connection ends; without its body for the method HEAD.
std::string http_response(int status, std::string_view type, std::string_view body, bool head);

}  // namespace lockstep::observe
