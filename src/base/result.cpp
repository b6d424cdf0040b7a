#include "base/result.h"

#include <array>

#include "lockstep/error.h"

namespace lockstep::base {
namespace {

void append(std::string& line, std::string_view part) {
  if (part.empty()) return;
  if (!line.empty()) line += ": ";
  line += part;
}

}  // namespace

std::string_view name(FailureKind kind) {
  constexpr std::array<std::string_view, 10> kNames{"other",   "usage",   "unreachable", "refused", "gone",
                                                    "timeout", "corrupt", "io",          "limit",   "interrupted"};
  return kNames[static_cast<size_t>(kind)];
}

Failure Failure::of(const std::exception& error) {
  Failure failure{FailureKind::other, error.what()};
  if (const auto* io = dynamic_cast<const IoError*>(&error)) {
    const bool limit = dynamic_cast<const LimitError*>(&error) != nullptr;
    failure.kind = limit ? FailureKind::limit : FailureKind::io;
    failure.error_number = io->error_number();
    failure.path = io->path();
  } else if (dynamic_cast<const UsageError*>(&error) != nullptr) {
    failure.kind = FailureKind::usage;
  } else if (dynamic_cast<const DataError*>(&error) != nullptr) {
    failure.kind = FailureKind::corrupt;
  }
  return failure;
}

Failure Failure::because(std::string outer) && {
  context.push_back(std::move(outer));
  return std::move(*this);
}

Failure Failure::named(const std::vector<std::string>& names) && {
  if (roles.empty()) {
    for (const int rank : ranks) {
      const bool known = rank >= 0 && static_cast<size_t>(rank) < names.size();
      roles.push_back(known ? names[static_cast<size_t>(rank)] : "rank " + std::to_string(rank));
    }
  }
  return std::move(*this);
}

std::string Failure::message() const {
  std::string who;
  for (const std::string& role : roles) who += (who.empty() ? "" : ", ") + role;
  for (size_t i = 0; i < ranks.size() && roles.empty(); ++i) {
    who += (who.empty() ? "rank " : ", rank ") + std::to_string(ranks[i]);
  }
  if (!address.empty()) who += (who.empty() ? "" : " at ") + address;
  std::string line;
  for (auto outer = context.rbegin(); outer != context.rend(); ++outer) append(line, *outer);
  append(line, who);
  append(line, text);
  return line;
}

void Failure::raise() const {
  if (kind == FailureKind::usage) throw UsageError(message());
  throw Error(message());
}

}  // namespace lockstep::base
