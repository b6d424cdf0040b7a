#include "launch/role_failure.h"

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/limits.h"
#include "launch/ssh_launch.h"
#include "lockstep/error.h"
#include "process/line_reader.h"

namespace lockstep::launch {
namespace {

using nlohmann::ordered_json;
using FailureKind = RoleFailure::Kind;

constexpr std::string_view kFailureBegins = R"({"event":"failure")";
constexpr size_t kLongestFailure = 16'384;
constexpr std::array<std::string_view, 6> kFailureKinds{"other", "usage", "data", "io", "limit", "not-finite"};

std::string folder_of_path(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

std::optional<uint64_t> count_at(const ordered_json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_unsigned()) return std::nullopt;
  return found->get<uint64_t>();
}

std::string text_at(const ordered_json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? process::printable(found->get<std::string>()) : "";
}

/// Says what is left of a failed run, and how it goes on if a resumed one would not fail in the same way.
std::string about_output(const RoleFailure& failure) {
  if (failure.output.empty()) return "";
  const bool of_the_system =
      failure.kind == FailureKind::io || failure.kind == FailureKind::limit || failure.kind == FailureKind::other;
  if (!failure.saved || !of_the_system) return "; partial output is in " + failure.output;
  return "; step " + std::to_string(*failure.saved) + " is saved: `lockstep train --resume " +
         shell_word(failure.output) + "` resumes from it";
}

}  // namespace

bool RoleFailure::same_fault(const RoleFailure& other) const {
  if (kind != other.kind || error_number != other.error_number) return false;
  if (!names_place() || !other.names_place()) return text == other.text;
  return folder_of_path(path) == folder_of_path(other.path);
}

RunError::RunError(RoleFailure failure) : Error(failure.text + about_output(failure)), failure_(std::move(failure)) {}

RoleFailure failure_of(const std::exception& error) {
  if (const auto* run = dynamic_cast<const RunError*>(&error)) return run->failure();
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
  if (const auto* not_finite = dynamic_cast<const NonFiniteError*>(&error)) {
    failure.kind = FailureKind::not_finite;
    failure.step = not_finite->step();
  }
  return failure;
}

std::string to_json(const RoleFailure& failure) {
  ordered_json json{{"event", "failure"},
                    {"role", failure.role},
                    {"kind", kFailureKinds[static_cast<size_t>(failure.kind)]},
                    {"errno", failure.error_number},
                    {"path", failure.path}};
  if (failure.saved) json["saved"] = *failure.saved;
  if (failure.step) json["step"] = *failure.step;
  if (!failure.output.empty()) json["output"] = failure.output;
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
  failure.role = text_at(object, "role");
  failure.path = text_at(object, "path");
  failure.saved = count_at(object, "saved");
  failure.step = count_at(object, "step");
  failure.output = text_at(object, "output");
  failure.text = text_at(object, "text");
  return failure;
}

std::optional<RoleFailure> read_failure(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return parse_failure(line);
}

}  // namespace lockstep::launch
