#include "launch/role_failure.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/limits.h"
#include "lockstep/error.h"
#include "process/line_reader.h"

namespace lockstep::launch {
namespace {

using nlohmann::ordered_json;
using FailureKind = RoleFailure::Kind;

constexpr std::string_view kFailureBegins = R"({"event":"failure")";
constexpr size_t kLongestFailure = 16'384;
constexpr std::array<std::string_view, 5> kFailureKinds{"other", "usage", "data", "io", "limit"};

std::string folder_of_path(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

std::string text_at(const ordered_json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? process::printable(found->get<std::string>()) : "";
}

}  // namespace

bool RoleFailure::same_fault(const RoleFailure& other) const {
  if (kind != other.kind || error_number != other.error_number) return false;
  if (!names_place() || !other.names_place()) return text == other.text;
  return folder_of_path(path) == folder_of_path(other.path);
}

RoleFailure failure_of(const std::exception& error) {
  RoleFailure failure;
  failure.text = base::error_text(error);
  if (const auto* io = dynamic_cast<const IoError*>(&error)) {
    failure.kind = FailureKind::io;
    failure.error_number = io->error_number();
    failure.path = io->path();
  }
  if (dynamic_cast<const UsageError*>(&error) != nullptr) failure.kind = FailureKind::usage;
  if (dynamic_cast<const DataError*>(&error) != nullptr) failure.kind = FailureKind::data;
  if (base::is_limit(error)) failure.kind = FailureKind::limit;
  return failure;
}

std::string to_json(const RoleFailure& failure, const std::string& role) {
  ordered_json json{{"event", "failure"},
                    {"role", role},
                    {"kind", kFailureKinds[static_cast<size_t>(failure.kind)]},
                    {"errno", failure.error_number},
                    {"path", failure.path}};
  if (failure.saved) json["saved"] = *failure.saved;
  json["text"] = failure.text;
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::optional<RoleFailure> parse_failure(const std::string& line) {
  if (!line.starts_with(kFailureBegins) || line.size() > kLongestFailure) return std::nullopt;
  const ordered_json object = base::parse_json_or_discard<ordered_json>(line);
  if (!object.is_object()) return std::nullopt;
  RoleFailure failure;
  const std::string kind = text_at(object, "kind");
  for (size_t i = 0; i < kFailureKinds.size(); ++i) {
    if (kind == kFailureKinds[i]) failure.kind = static_cast<FailureKind>(i);
  }
  const auto number = object.find("errno");
  if (number != object.end() && number->is_number_integer()) failure.error_number = number->get<int>();
  failure.path = text_at(object, "path");
  const auto saved = object.find("saved");
  if (saved != object.end() && saved->is_number_unsigned()) failure.saved = saved->get<uint64_t>();
  failure.text = text_at(object, "text");
  return failure;
}

}  // namespace lockstep::launch
