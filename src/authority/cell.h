// The register itself, as plain logic without threads, network or clock: the launcher holds one, and so do simulations.
#pragma once

#include <utility>

#include "authority/register.h"

namespace lockstep::authority {

/// Returns why no register would make this swap; empty: it is well formed.
std::string why_malformed(const Group& expected, const Group& next);

class Cell {
 public:
  Cell() = default;
  explicit Cell(Group first) : group_(std::move(first)) {}

  [[nodiscard]] const Group& group() const { return group_; }
  /// Returns won, lost or, for a malformed swap, refused. Won again if it holds `next` already.
  Answer swap(const Group& expected, const Group& next);

 private:
  Group group_;
};

}  // namespace lockstep::authority
