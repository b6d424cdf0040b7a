// The HTTP that is spoken here: requests of one header without a body, responses after which the connection ends. Pure
// functions over texts; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::http {

struct Request {
  std::string method;
  std::vector<std::string> path;                            ///< between the slashes, decoded; "/" has none
  std::map<std::string, std::string, std::less<>> query;    ///< still encoded, for lists are split first
  std::map<std::string, std::string, std::less<>> headers;  ///< names in small letters

  /// Decoded; empty where it is not there.
  [[nodiscard]] std::string parameter(std::string_view name) const;
  [[nodiscard]] std::string header(std::string_view name) const;
  [[nodiscard]] std::string cookie(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
  bool events = false;  ///< the connection stays and gets what is published
};

Response plain_response(int status, std::string_view line);

/// Whether all of its header is there.
bool is_whole_request(std::string_view text);

/// Of a whole one. What is no request, or a path that means to leave its folder (`..`, an encoded slash, an empty or a
/// hidden part), is a response in its place: 400 or 404.
std::optional<Request> parse_request(std::string_view text, Response& refused);

/// "%41" as "A"; nothing for what is wrongly encoded.
std::optional<std::string> url_decoded(std::string_view text);

/// With the security headers, and without its body where `head`.
std::string response_text(const Response& response, bool head);

}  // namespace lockstep::http
