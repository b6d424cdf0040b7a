// Gloo over TCP: the engine of processes that know each other's addresses. Each group has a fresh context, so that a
// group that broke cannot disturb the next one. Not encrypted: beyond one machine it needs a network that is trusted.
#pragma once

#include <memory>
#include <string>

#include "collective/collective.h"

namespace lockstep::collective {

/// This member's half of a group, listening on `host` (a name or address of this machine) and a free port. Throws
/// IoError where it cannot.
std::unique_ptr<Joining> join_over_gloo(const std::string& host, int rank, int size, const GroupOptions& options);

}  // namespace lockstep::collective
