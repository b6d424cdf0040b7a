#include "base/json.h"

#include <fmt/format.h>

namespace lockstep::base {

bool is_too_deep(std::string_view json) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > kDeepestJson) return true;
  }
  return false;
}

std::string json_error(std::string_view text, size_t byte, const std::string& what) {
  constexpr size_t kShown = 60;
  if (text.empty()) return what + ": is not valid JSON: it is empty";
  const size_t begin = byte > kShown / 2 ? byte - kShown / 2 : 0;
  const std::string_view near = begin < text.size() ? text.substr(begin, kShown) : std::string_view();
  std::string shown = nlohmann::json(near).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (shown.size() > kShown) shown = shown.substr(0, kShown) + "...";
  return fmt::format("{}: is not valid JSON: error at byte {}, in {}", what, byte, shown);
}

}  // namespace lockstep::base
