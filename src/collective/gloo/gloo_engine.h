// Gloo over TCP: the engine of processes that know each other's addresses. Each group has a fresh context, so that a
// group that broke cannot disturb the next one. Calls return at once after `abort`, and when a member dies.
//
// Not encrypted: beyond one machine it needs a network that is trusted. A stranger who connects first where a member
// waits for another makes that group fail: members greet each other with what is in their addresses. But Debian's Gloo
// reads on a thread of its own until a group is connected, and a well-formed message of Gloo's that nobody waits for
// throws there, which ends the process: who forges one in that moment, before the greeting, can stop this member.
#pragma once

#include <memory>
#include <string>

#include "collective/collective.h"

namespace lockstep::collective {

/// This member's half of a group, listening on `host` (a name or address of this machine) and a free port. Throws
/// IoError where it cannot.
std::unique_ptr<Joining> join_over_gloo(const std::string& host, int rank, int size, const GroupOptions& options);

}  // namespace lockstep::collective
