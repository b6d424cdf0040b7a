#include "observe/metrics/http_request.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::observe {
namespace {

std::string_view reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    default:
      return "Internal Server Error";
  }
}

}  // namespace

bool is_whole_request(std::string_view text) {
  return text.find("\r\n\r\n") != std::string_view::npos || text.find("\n\n") != std::string_view::npos;
}

std::optional<HttpRequest> parse_request(std::string_view text) {
  std::string_view line = text.substr(0, text.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  const size_t first = line.find(' ');
  const size_t second = line.rfind(' ');
  if (first == std::string_view::npos || second <= first) return std::nullopt;
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, second - first - 1);
  const std::string_view version = line.substr(second + 1);
  const auto letter = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto plain = [](char c) { return c > ' ' && c <= '~'; };
  if (method.empty() || !std::all_of(method.begin(), method.end(), letter)) return std::nullopt;
  if (!target.starts_with('/') || !std::all_of(target.begin(), target.end(), plain)) return std::nullopt;
  if (version != "HTTP/1.0" && version != "HTTP/1.1") return std::nullopt;
  return HttpRequest{std::string(method), std::string(target.substr(0, target.find('?')))};
}

std::string http_response(int status, std::string_view type, std::string_view body, bool head) {
  return fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}", status,
                     reason(status), type, body.size(), head ? "" : body);
}

}  // namespace lockstep::observe
