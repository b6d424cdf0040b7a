#include "http/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace lockstep::http {
namespace {

std::string_view reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 303:
      return "See Other";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Returns the text up to the next `end`, and removes both from `text`.
std::string_view take_until(std::string_view& text, char end) {
  const size_t at = text.find(end);
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return part;
}

std::string_view take_line(std::string_view& text) {
  std::string_view line = take_until(text, '\n');
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool is_visible(char c) { return c > ' ' && c <= '~'; }

/// Returns false for a part that could name another folder or a hidden file.
bool is_plain_part(std::string_view part) {
  return !part.empty() && part.front() != '.' && std::none_of(part.begin(), part.end(), [](unsigned char c) {
    return c == '/' || c == '\\' || c < ' ' || c == 0x7f;
  });
}

bool read_path(std::string_view text, Request& request, Response& refused) {
  if (text == "/") return true;
  while (!text.empty()) {
    text.remove_prefix(1);
    const std::string_view encoded = text.substr(0, text.find('/'));
    text.remove_prefix(encoded.size());
    const std::optional<std::string> part = url_decoded(encoded);
    if (!part) {
      refused = plain_response(400, "the path is not valid URL encoding");
      return false;
    }
    if (!is_plain_part(*part)) {
      refused = plain_response(404, "page not found");
      return false;
    }
    request.path.push_back(*part);
  }
  return true;
}

/// Reads "Host: localhost" into `request`. Returns false for anything but a header, or for a second `host`.
bool read_header(std::string_view line, Request& request) {
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) return false;
  std::string name(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  const auto control = [](unsigned char c) { return (c < ' ' && c != '\t') || c == 0x7f; };
  if (!std::all_of(name.begin(), name.end(), is_visible) || std::any_of(value.begin(), value.end(), control)) {
    return false;
  }
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const bool added = request.headers.emplace(name, value).second;
  return added || name != "host";
}

/// Reads headers up to the empty line that ends them.
bool read_headers(std::string_view text, Request& request) {
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.empty()) return true;
    if (!read_header(line, request)) return false;
  }
  return true;
}

bool read_first_line(std::string_view line, std::string_view& method, std::string_view& target) {
  const size_t first = line.find(' ');
  const size_t second = line.rfind(' ');
  if (first == std::string_view::npos || second <= first) return false;
  method = line.substr(0, first);
  target = line.substr(first + 1, second - first - 1);
  const std::string_view version = line.substr(second + 1);
  const auto letter = [](char c) { return c >= 'A' && c <= 'Z'; };
  return !method.empty() && std::all_of(method.begin(), method.end(), letter) && target.starts_with('/') &&
         std::all_of(target.begin(), target.end(), is_visible) && (version == "HTTP/1.0" || version == "HTTP/1.1");
}

}  // namespace

std::string Request::parameter(std::string_view name) const {
  const auto found = query.find(name);
  return found == query.end() ? "" : url_decoded(found->second).value_or("");
}

std::string Request::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

std::string Request::cookie(std::string_view name) const {
  const std::string all = header("cookie");
  std::string_view rest = all;
  while (!rest.empty()) {
    std::string_view pair = trimmed(take_until(rest, ';'));
    if (take_until(pair, '=') == name) return std::string(pair);
  }
  return "";
}

Response plain_response(int status, std::string_view line) {
  return {.status = status, .body = std::string(line) + "\n"};
}

bool is_whole_request(std::string_view text) {
  return text.find("\n\r\n") != std::string_view::npos || text.find("\n\n") != std::string_view::npos;
}

std::optional<std::string> url_decoded(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]);
    const int low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    result += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return result;
}

std::optional<Request> parse_request(std::string_view text, Response& refused) {
  Request request;
  std::string_view method;
  std::string_view target;
  refused = plain_response(400, "not an HTTP request");
  if (!read_first_line(take_line(text), method, target)) return std::nullopt;
  if (!read_headers(text, request)) return std::nullopt;
  request.method = method;
  if (!read_path(take_until(target, '?'), request, refused)) return std::nullopt;
  while (!target.empty()) {
    std::string_view value = take_until(target, '&');
    const std::string_view name = take_until(value, '=');
    request.query.emplace(name, value);
  }
  return request;
}

std::string response_text(const Response& response, bool head) {
  std::string text =
      fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\n", response.status, reason(response.status), response.type);
  if (!response.events) text += fmt::format("Content-Length: {}\r\n", response.body.size());
  for (const auto& [name, value] : response.headers) text += fmt::format("{}: {}\r\n", name, value);
  text +=
      "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"
      "X-Frame-Options: DENY\r\nCross-Origin-Resource-Policy: same-origin\r\nConnection: close\r\n\r\n";
  return head ? text : text + response.body;
}

}  // namespace lockstep::http
