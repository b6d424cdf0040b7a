#include "authority/cell.h"

#include <fmt/format.h>

namespace lockstep::authority {

std::string why_malformed(const Group& expected, const Group& next) {
  if (next.number <= expected.number) {
    return fmt::format("group {} cannot follow group {}: numbers rise", next.number, expected.number);
  }
  return next.id == 0 || next.seats.empty() ? fmt::format("group {} has no id or no members", next.number) : "";
}

Answer Cell::swap(const Group& expected, const Group& next) {
  if (const std::string why = why_malformed(expected, next); !why.empty()) {
    return {Outcome::refused, group_, {.kind = base::FailureKind::usage, .text = why}};
  }
  if (group_ == expected) group_ = next;
  return {group_ == next ? Outcome::won : Outcome::lost, group_, {}};
}

}  // namespace lockstep::authority
