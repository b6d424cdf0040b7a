// The reader of HTTP requests must answer any bytes with a request whose path stays inside its folder, or with a
// refusal.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "http/message.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep::http;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  Response refused;
  const std::optional<Request> request = parse_request(text, refused);
  if (!request) {
    require(refused.status == 400 || refused.status == 404);
    require(response_text(refused, false).ends_with(refused.body));
    return 0;
  }
  for (const std::string& part : request->path) {
    require(!part.empty() && part[0] != '.' && part.find('/') == std::string::npos &&
            part.find('\0') == std::string::npos);
  }
  for (const auto& [name, value] : request->headers) {
    require(request->header(name) == value && value.find('\n') == std::string::npos);
  }
  for (const auto& [name, value] : request->query) {
    require(request->parameter(name).size() <= value.size());
  }
  require(request->cookie("a").size() <= request->header("cookie").size());
  return 0;
}
