// The supported part of HTTP: requests of one header without a body, and responses after which the connection ends.
// Pure functions over texts; any thread.
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
  std::vector<std::string> path;                            ///< parts between the slashes, decoded; none for "/"
  std::map<std::string, std::string, std::less<>> query;    ///< still encoded, since lists are split first
  std::map<std::string, std::string, std::less<>> headers;  ///< names in lower case

  /// Returns the decoded parameter; empty if it is absent.
  [[nodiscard]] std::string parameter(std::string_view name) const;
  [[nodiscard]] std::string header(std::string_view name) const;
  [[nodiscard]] std::string cookie(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
  bool events = false;  ///< the connection stays open and receives the published events
};

Response plain_response(int status, std::string_view line);

/// Returns true if the text contains the whole header.
bool is_whole_request(std::string_view text);

/// Parses a complete request. If the text is not a request, or its path tries to leave its folder (`..`, an encoded
/// slash, an empty or a hidden part), sets `refused` to a response with status 400 or 404.
std::optional<Request> parse_request(std::string_view text, Response& refused);

/// Returns "%41" as "A"; nothing if the text is wrongly encoded.
std::optional<std::string> url_decoded(std::string_view text);

/// Returns the response with the security headers, without its body if `head`.
std::string response_text(const Response& response, bool head);

}  // namespace lockstep::http
